"""True values without a closed form, each from one very large draw and stored with its error in `large_draws.json`.

`python -m beholder.studies.large_draws` draws them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.errors import UnknownName

Array = npt.NDArray[np.float64]
SEED, TOTAL, PART = 8, 2_000_000, 20_000


class LargeDraw(NamedTuple):
    """A mean over very many draws, with its standard error."""

    value: float
    error: float
    draws: int


@cache
def _stored() -> dict[str, LargeDraw]:
    text = (files("beholder.studies") / "large_draws.json").read_text(encoding="utf-8")
    return {name: LargeDraw(**entry) for name, entry in json.loads(text).items()}


def large_draw(name: str) -> LargeDraw:
    """A stored true value."""
    if name not in _stored():
        raise UnknownName("large draw", name, _stored())
    return _stored()[name]


def _identity(names: int, draws: int, rng: np.random.Generator) -> Array:
    from beholder.metrics.association import softmax
    from beholder.studies.public_figures.trials import identity_logits

    return softmax(identity_logits(draws, names, rng))[:, 0]


def _ndkl(n: int, effect: float, draws: int, rng: np.random.Generator) -> Array:
    from beholder.metrics.ranking import ndkl
    from beholder.studies.perception.trials import NOISE, WORDS

    codes = np.repeat([0, 1], n)
    spread = np.sqrt(NOISE.image**2 + NOISE.cell**2 / len(WORDS))
    scores = spread * rng.standard_normal((draws, 2 * n)) + effect * (codes == 0)
    return ndkl(codes[np.argsort(-scores, axis=1)], np.array([0.5, 0.5]))


DRAWN: dict[str, Callable[[int, np.random.Generator], Array]] = {
    **{f"identity {names}": partial(_identity, names) for names in (30, 100, 300)},
    **{
        f"ndkl {n} {effect:g}": partial(_ndkl, n, effect)
        for n, effect in ((100, 0.0), (100, 0.25), (100, 0.5), (200, 0.0), (200, 0.25))
    },
}
"""What is drawn: so many independent values whose mean is the true one."""


def draw(name: str, total: int = TOTAL, seed: int = SEED) -> LargeDraw:
    """A true value, drawn again in parts."""
    rng = np.random.default_rng([seed, *name.encode()])
    values = np.concatenate([DRAWN[name](min(PART, total - start), rng) for start in range(0, total, PART)])
    return LargeDraw(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))), len(values))


if __name__ == "__main__":
    found = {name: draw(name)._asdict() for name in DRAWN}
    Path(__file__).with_name("large_draws.json").write_text(json.dumps(found, indent=1) + "\n")
