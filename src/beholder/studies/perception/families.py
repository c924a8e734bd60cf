"""Families: numbers that a reader compares with each other, with intervals and p-values that allow for choosing.

Whoever names the widest of 24 gaps names the luckiest too. The bounds here hold for all numbers of a family at once,
hence also for the one that is picked, and p is that of the farthest of the family.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from beholder.core.results import Row
from beholder.metrics.clustered import Spread
from beholder.metrics.simultaneous import simultaneous_band

Array = npt.NDArray[np.float64]
DRAWS = 4000
ALIKE = 1e-12
"""Errors below this are rounding: the scores are all alike."""
GRID = np.linspace(-6.0, 6.0, 241)


class Family(NamedTuple):
    """Numbers with bounds that hold for all of them at once; NaN where there are too few people, or no spread."""

    value: Array
    low: Array
    high: Array
    p_value: Array
    at_most: npt.NDArray[np.bool_]

    def row(self, place: int, row: Row, landmark: float = 0.0) -> Row:
        """One number as a row of results; `landmark` is the value without any effect, where that is not 0."""
        numbers = (float(part[place]) + landmark for part in (self.value, self.low, self.high))
        value, low, high = numbers
        at_most = bool(self.at_most[place]) or None
        row = row._replace(value=value, low=low, high=high, p_value=float(self.p_value[place]), p_at_most=at_most)
        return row._replace(landmark=landmark) if landmark else row

    @property
    def how(self) -> str:
        """For notes: what interval and p allow for."""
        return f"interval and p hold for all {len(self.value)} at once"


def family(value: Array, spread: Spread, rng: np.random.Generator) -> Family:
    """Bounds of all values at once: what varies together is drawn together, few people have Student's long tails."""
    value, errors = value.ravel(), np.sqrt(np.diag(spread.covariance))
    known = np.flatnonzero((errors > ALIKE) & np.isfinite(spread.free) & np.isfinite(value))
    low, high, p_value = (np.full(len(value), np.nan) for _ in range(3))
    at_most = np.zeros(len(value), bool)
    if len(known):
        correlation = spread.covariance[np.ix_(known, known)] / np.outer(errors[known], errors[known])
        sizes, axes = np.linalg.eigh(correlation)
        root = axes * np.sqrt(np.maximum(sizes, 0.0))
        normal = rng.standard_normal((DRAWS, len(known))) @ root.T
        draws = errors[known] * _long_tailed(normal, spread.free[known])
        band = simultaneous_band(value[known], draws)
        low[known], high[known] = band.low, band.high
        apart = np.sort((np.abs(draws - draws.mean(axis=0)) / draws.std(axis=0, ddof=1)).max(axis=1))
        hits = DRAWS - np.searchsorted(apart, np.abs(value[known]) / draws.std(axis=0, ddof=1))
        p_value[known], at_most[known] = (1 + hits) / (1 + DRAWS), hits == 0
    return Family(value, low, high, p_value, at_most)


def _long_tailed(normal: Array, free: Array) -> Array:
    """Columns of normal numbers as Student's with these degrees of freedom; read off a grid, which is far quicker."""
    free = np.clip(np.floor(free), 1, 1000)
    tails = {each: stdtrit(each, ndtr(GRID)) for each in set(free.tolist())}
    columns = [np.interp(column, GRID, tails[each]) for column, each in zip(normal.T, free.tolist(), strict=True)]
    return np.stack(columns, axis=1)
