"""True values without a closed form, each from one very large draw.

A room keeps its values with their errors in `large_draws.json`; `tools/large_draws.py` draws them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], Array]
"""So many independent values whose mean is the true one."""
SEED, TOTAL, PART = 8, 2_000_000, 20_000


class LargeDraw(NamedTuple):
    """A mean over very many draws, with its standard error."""

    value: float
    error: float
    draws: int


@cache
def large_draws(room: Path) -> dict[str, LargeDraw]:
    """The stored true values of a study's folder, by name."""
    entries = json.loads((room / "large_draws.json").read_text(encoding="utf-8"))
    return {name: LargeDraw(**entry) for name, entry in entries.items()}


def draw(name: str, make: Draw, total: int = TOTAL, seed: int = SEED) -> LargeDraw:
    """A true value, drawn again in parts."""
    rng = np.random.default_rng([seed, *name.encode()])
    values = np.concatenate([make(min(PART, total - start), rng) for start in range(0, total, PART)])
    return LargeDraw(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))), len(values))
