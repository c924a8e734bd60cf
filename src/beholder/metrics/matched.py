"""Matched sets: images that differ in one attribute alone, so that their difference is what the attribute does.

A set's difference is averaged within a seed (one identity with all its variants); seeds are what is resampled, with a
studentised bootstrap, because there are few of them. Pure functions for many columns at once. Unlike mean absolute
differences, which noise pushes upward, these averages are centred on the effect whatever the noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.metrics.bootstrap import FEWEST, Resampler
from beholder.metrics.clustered import Array, Codes, Estimates, indicator, two_sided


class BySeed(NamedTuple):
    """One number a seed and column, of the seeds that have any; `sets` counts the matched sets behind them."""

    seeds: Codes
    values: Array
    sets: int


def differences(values: npt.NDArray[Any], sets: Codes, side: Codes) -> tuple[npt.NDArray[np.int_], Array]:
    """Of every set with both sides: mean of the images with `side` 1 less mean of those with −1."""
    n_sets = int(np.max(sets, initial=-1)) + 1
    values = _columns(values)
    upper, lower = (_means(values, np.where(side == sign, sets, -1), n_sets) for sign in (1, -1))
    gaps = upper - lower
    both = np.flatnonzero(~np.isnan(gaps).all(axis=1))
    return both, gaps[both]


def slopes(values: npt.NDArray[Any], sets: Codes, levels: Array) -> tuple[npt.NDArray[np.int_], Array]:
    """Of every set with two levels or more: the least-squares slope of its values over the levels."""
    n_sets = int(np.max(sets, initial=-1)) + 1
    inside = np.flatnonzero(sets >= 0)
    values = _columns(values)[inside]
    sets, levels = sets[inside], levels[inside]
    centre, mean = _means(levels[:, None], sets, n_sets), _means(values, sets, n_sets)
    off = levels - centre[sets, 0]
    belongs = indicator(sets, n_sets)
    spread = np.asarray(belongs @ off**2)
    known = np.flatnonzero(spread > 0)
    return known, np.asarray(belongs @ (off[:, None] * (values - mean[sets])))[known] / spread[known, None]


def by_seed(gaps: Array, seeds: Codes) -> BySeed:
    """Sets averaged within their seed; `seeds[i]` is the seed of row i of `gaps`."""
    known, codes = np.unique(seeds, return_inverse=True)
    return BySeed(known, _means(gaps, codes, len(known)), len(gaps))


def less(first: BySeed, second: BySeed) -> BySeed:
    """The first less the second, of the seeds that have both."""
    _, mine, theirs = np.intersect1d(first.seeds, second.seeds, return_indices=True)
    values = first.values[mine] - second.values[theirs]
    return BySeed(first.seeds[mine], values, min(first.sets, second.sets))


def seed_mean(gaps: BySeed, rng: np.random.Generator, draws: int) -> Estimates:
    """The mean over seeds with a studentised bootstrap interval; NaN bounds below five seeds."""
    n, value = len(gaps.values), gaps.values.mean(axis=0)
    counts = np.full(len(value), gaps.sets)
    if n < FEWEST:
        absent = np.full_like(value, np.nan)
        return Estimates(value, absent, absent, counts, absent)
    centred = gaps.values - value
    resampler = Resampler(np.arange(n), rng, draws)
    first, second = np.split(resampler.means(np.concatenate([centred, centred**2], axis=1)), 2, axis=1)
    # A draw of one seed n times over has no spread and says nothing: its ratio is left aside.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = first / np.sqrt(np.maximum(second - first**2, 0.0) / (n - 1))
    ratio[~np.isfinite(ratio)] = np.nan
    error = centred.std(axis=0, ddof=1) / np.sqrt(n)
    still = np.isnan(ratio).all(axis=0)  # every seed says the same: no spread, no width
    low, high = np.zeros_like(value), np.zeros_like(value)
    if not still.all():
        low[~still], high[~still] = np.nanquantile(ratio[:, ~still], [0.025, 0.975], axis=0)
    return Estimates(value, value - high * error, value - low * error, counts, two_sided(value, error, np.array(n - 1)))


def _columns(values: npt.NDArray[Any]) -> Array:
    """One number a row is one column."""
    values = np.asarray(values, dtype=np.float64)
    return values[:, None] if values.ndim == 1 else values


def _means(values: Array, codes: Codes, count: int) -> Array:
    """Mean of the rows of each code, `[count, n_columns]`; NaN for a code without rows, −1 belongs to none."""
    inside = np.flatnonzero(codes >= 0)
    belongs = indicator(codes[inside], count)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(belongs @ values[inside]) / np.bincount(codes[inside], minlength=count)[:, None]
