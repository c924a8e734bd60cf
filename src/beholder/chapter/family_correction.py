"""Claims: which of several intervals still lie off their landmark when it is remembered that there are several.

A page that says "tells people apart by name" of one branch in five would say it of noise once in eight runs or so. The
headlines therefore speak of what survives Holm's correction over the branches; the intervals in the tables stay each
for itself. A p-value is read off an interval: how many of its own half widths the landmark is away.
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
    """Two-sided p of a landmark beyond the `bound` that faces it; 0.05 where the bound just reaches it.

    >>> round(p_from_interval(0.5, 0.3, 0.3), 3)
    0.05
    """
    width = abs(value - bound)
    return float(2 * norm.sf(abs(value - landmark) / width * norm.isf(ALPHA / 2))) if width else 0.0


def surviving(
    rows: Sequence[Result], landmark: Callable[[Result], float | None], scale: Callable[[float], float] = float
) -> list[Result]:
    """The rows whose intervals exclude their landmark even after Holm's correction over all of them.

    `scale` is where intervals are even: the logarithm for a ratio.
    """
    p_values = np.array([_p(row, landmark(row), scale) for row in rows])
    corrected = holm(p_values) if len(rows) else p_values
    return [
        row
        for row, p in zip(rows, corrected, strict=True)
        if p <= ALPHA and (place := landmark(row)) is not None and excludes(row, place)
    ]


def log(value: float) -> float:
    """The scale of ratios; 0 is infinitely far down."""
    return math.log(value) if value > 0 else -math.inf


def _p(row: Result, landmark: float | None, scale: Callable[[float], float]) -> float:
    if landmark is None or not has_interval(row):
        return math.nan
    facing = row["low"] if row["value"] > landmark else row["high"]
    if not all(map(math.isfinite, map(scale, (row["value"], facing, landmark)))):
        return math.nan if not excludes(row, landmark) else 0.0
    return p_from_interval(scale(row["value"]), scale(facing), scale(landmark))
