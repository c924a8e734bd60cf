"""Numerical stability: how far a model's scores move when a picture's numbers change in their sixth digit.

Arithmetic in float32 moves a score by about a millionth then. A graph that rounds on the way, like a dynamically
quantised one, may move it by a thousand times as much, and what is measured on its scores moves with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.models.scorer import Floats, Scorer

NUDGE = 1e-6
LIMIT = 1e-3
"""Scores that move by more are reported."""


def movement(scorer: Scorer, prompts: Sequence[str]) -> Floats | None:
    """How far each channel moves at most, for one picture; None where nothing was nudged, as with a served model."""
    prepared = scorer.prepare(_picture())
    nudged = [_nudged(prepared, 1 + sign * NUDGE) for sign in (1, -1)]
    if any(each is None for each in nudged):
        return None
    before, *after = (scorer.score_prepared([each], prompts)[0] for each in (prepared, *nudged))
    return np.asarray(np.abs(np.stack(after) - before).max(axis=(0, 1)), np.float32)


def shaken(cells: npt.NDArray[np.floating], moved: Floats, rng: np.random.Generator) -> npt.NDArray[np.floating]:
    """Scores `[images, prompts, channels]` with noise as large as their movement, within the range that they have."""
    noise = rng.uniform(-1, 1, cells.shape) * moved
    low, high = (edge(cells, axis=(0, 1), keepdims=True) for edge in (np.nanmin, np.nanmax))
    return np.clip(cells + noise, low, high)


def _nudged(value: Any, factor: float) -> Any:
    """The same with every floating-point array multiplied; None if it holds none."""
    if hasattr(value, "dtype"):
        return value * factor if "float" in str(value.dtype) else None
    if isinstance(value, Mapping):
        parts = {name: _nudged(part, factor) for name, part in value.items()}
        changed = {name: part for name, part in parts.items() if part is not None}
        return {**value, **changed} if changed else None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        found = {name: _nudged(part, factor) for name, part in value._asdict().items()}  # type: ignore[attr-defined]
        kept = {name: part for name, part in found.items() if part is not None}
        return value._replace(**kept) if kept else None  # type: ignore[attr-defined]
    return None


def _picture() -> Image.Image:
    """Smooth colours with some noise, as photographs have."""
    rng = np.random.default_rng(3)
    down, across = np.mgrid[0:192, 0:256]
    planes = np.stack([across, 255 - across, down], axis=-1) * 0.7 + rng.normal(30, 12, (192, 256, 3))
    return Image.fromarray(np.clip(planes, 0, 255).astype(np.uint8))
