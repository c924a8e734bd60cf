"""Matched sets: images that differ in one attribute alone, so that their difference is what the attribute does.

A set's difference is averaged within a seed (one identity with all its variants); seeds are what varies. Pure functions
for many columns at once. Unlike mean absolute differences, which noise pushes upward, these averages are centred on the
effect whatever the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.metrics.clustered import Array, Codes, indicator


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


def curvatures(values: npt.NDArray[Any], sets: Codes, levels: Array) -> tuple[npt.NDArray[np.int_], Array]:
    """Of every set with three levels or more: c of its least-squares curve a + b·level + c·level²."""
    n_sets = int(np.max(sets, initial=-1)) + 1
    inside = np.flatnonzero(sets >= 0)
    values, sets, levels = _columns(values)[inside], sets[inside], levels[inside]
    belongs = indicator(sets, n_sets)
    off = levels - _means(levels[:, None], sets, n_sets)[sets, 0]
    square = off**2 - _means(off[:, None] ** 2, sets, n_sets)[sets, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        line = np.nan_to_num((belongs @ (off * square)) / (belongs @ off**2))
    bent = square - line[sets] * off  # what of the square no straight line explains
    spread, scale = np.asarray(belongs @ bent**2), np.asarray(belongs @ off**2) ** 2
    known = np.flatnonzero(spread > 1e-9 * np.maximum(scale, 1e-300))
    return known, np.asarray(belongs @ (bent[:, None] * values))[known] / spread[known, None]


def by_seed(gaps: Array, seeds: Codes) -> BySeed:
    """Sets averaged within their seed; `seeds[i]` is the seed of row i of `gaps`."""
    known, codes = np.unique(seeds, return_inverse=True)
    return BySeed(known, _means(gaps, codes, len(known)), len(gaps))


def combined(parts: Sequence[BySeed], weights: Array) -> BySeed:
    """The weighted sum of the parts, of the seeds that all parts with a weight have."""
    used = [part for part, weight in zip(parts, weights, strict=True) if weight]
    shared = used[0].seeds
    for part in used[1:]:
        shared = np.intersect1d(shared, part.seeds)
    places = [np.searchsorted(part.seeds, shared) for part in used]
    kept = [weight for weight in weights if weight]
    total = sum(weight * part.values[rows] for weight, part, rows in zip(kept, used, places, strict=True))
    return BySeed(shared, np.asarray(total), min(part.sets for part in used))


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
