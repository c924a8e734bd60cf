"""Simultaneous intervals: bounds that hold for all of several numbers at once, hence also for the widest of them.

A headline that picks the widest of 100 gaps picks the luckiest too. An interval made for one gap covers the picked one
far less often than it says. Widths here come from the largest deviation in every draw (max-t), so that dependent
numbers are not punished as if they were independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Band(NamedTuple):
    """Bounds of each number; together they hold in `level` of all data sets. NaN where draws do not move."""

    low: Array
    high: Array
    multiplier: float
    """Standard errors on either side."""


def simultaneous_band(values: Array, draws: Array, level: float = 0.95) -> Band:
    """The band around `values[k]` from `draws[n_draws, k]` of the same numbers.

    >>> rng = np.random.default_rng(0)
    >>> band = simultaneous_band(np.zeros(100), rng.normal(size=(2000, 100)))
    >>> round(band.multiplier, 1)
    3.5
    """
    errors = np.nanstd(draws, axis=0, ddof=1) if len(draws) > 1 else np.full(draws.shape[1:], np.nan)
    errors = np.where(errors > 0, errors, np.nan)
    moves = np.abs(draws - np.nanmean(draws, axis=0)) / errors
    known = ~np.isnan(errors)
    if not known.any():
        return Band(np.full_like(values, np.nan), np.full_like(values, np.nan), float("nan"))
    multiplier = float(np.quantile(np.nanmax(moves[:, known], axis=1), level))
    return Band(values - multiplier * errors, values + multiplier * errors, multiplier)
