"""Family correction: which of several intervals exclude their landmark after correction for their number.

Noise would tell people apart by name in one of five branches about once in eight runs. Headlines therefore name only
what survives Holm's correction over the branches. The intervals in tables are not corrected. A p-value follows from an
interval: it depends on how many half widths the landmark is away from the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import norm

from beholder.chapter.numbers import Result, excludes, has_interval
from beholder.metrics.multiplicity import holm

ALPHA = 0.05


def p_from_interval(value: float, bound: float, landmark: float) -> float:
    """Two-sided p of a landmark beyond the `bound` that faces it; 0.05 if the bound equals the landmark.

    >>> round(p_from_interval(0.5, 0.3, 0.3), 3)
    0.05
    """
    width = abs(value - bound)
    return float(2 * norm.sf(abs(value - landmark) / width * norm.isf(ALPHA / 2))) if width else 0.0


def surviving(
    rows: Sequence[Result], landmark: Callable[[Result], float | None], scale: Callable[[float], float] = float
) -> list[Result]:
    """The rows whose intervals exclude their landmark even after Holm's correction over all of them.

    `scale` is the scale on which intervals are symmetric: the logarithm for a ratio.
    """
    p_values = np.array([_p(row, landmark(row), scale) for row in rows])
    corrected = holm(p_values) if len(rows) else p_values
    return [
        row
        for row, p in zip(rows, corrected, strict=True)
        if p <= ALPHA and (value := landmark(row)) is not None and excludes(row, value)
    ]


def log(value: float) -> float:
    """The scale of ratios; the logarithm of 0 is minus infinity."""
    return math.log(value) if value > 0 else -math.inf


def _p(row: Result, landmark: float | None, scale: Callable[[float], float]) -> float:
    if landmark is None or not has_interval(row):
        return math.nan
    facing = row["low"] if row["value"] > landmark else row["high"]
    if not all(map(math.isfinite, map(scale, (row["value"], facing, landmark)))):
        return math.nan if not excludes(row, landmark) else 0.0
    return p_from_interval(scale(row["value"]), scale(facing), scale(landmark))
