"""Clustered means: group means and curves through them, with intervals that know which images belong together.

Images of one person (a seed) are not independent; the variance is that of the clusters' sums (linearised, as in
survey statistics), the quantile Student's. Where every image is a cluster this is the ordinary interval of a mean.
Pure functions for many columns at once; missing values (NaN) are refused, the caller leaves them out.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special
from scipy.optimize import brentq

from beholder.core.types import AnyArray, Array, Integers, Ints, Mask
from beholder.metrics.intervals import FEWEST


class Estimates(NamedTuple):
    """Values with 95 % intervals and the images behind them; NaN below five clusters."""

    value: Array
    low: Array
    high: Array
    n: Ints


class CellMeans:
    """Means of `values[n_images, n_columns]` in cells; `cells[i]` is image i's cell, −1 for none."""

    def __init__(self, values: AnyArray, cells: Integers, clusters: AnyArray, n_cells: int) -> None:
        inside = np.flatnonzero(np.asarray(cells) >= 0)
        values, cells = _columns(values)[inside], np.asarray(cells)[inside]
        self.n, self.value = np.bincount(cells, minlength=n_cells), _means(values, cells, n_cells)
        _, cluster_codes = np.unique(np.asarray(clusters)[inside], return_inverse=True)
        # One row for every (cluster, cell) that occurs: how far its images pull the cell's mean.
        pairs, places = np.unique(np.stack([cluster_codes, cells]), axis=1, return_inverse=True)
        self._cluster, self._cell = pairs
        pull = (values - self.value[cells]) / self.n[cells, None]
        self.people = np.bincount(self._cell, minlength=n_cells)
        free = np.maximum(self.people - 1, 1)
        spread = np.sqrt(self.people / free)[self._cell, None]
        self._pulls = spread * np.asarray(indicator(places.ravel(), pairs.shape[1]) @ pull)
        self._variance = np.asarray(indicator(self._cell, n_cells) @ self._pulls**2)

    def means(self) -> Estimates:
        """Every cell's mean, `[n_cells, n_columns]`."""
        few = self.people < FEWEST
        free = (self.people[:, None] - 1).astype(np.float64)
        return _bounds(self.value, self._variance, free, few, self.n)

    def combined(self, weights: Array) -> Estimates:
        """Weighted sums of the cells' means, a row of `weights[n_sums, n_cells]` each, such as a fitted curve."""
        # Cells of weight 0 are left aside even where they are empty. One person does not tell how far a cell spreads:
        # with such a cell a sum has no interval. Small cells count by their own degrees of freedom (Satterthwaite's).
        weights = np.atleast_2d(weights)
        used = (weights != 0).astype(np.float64)
        value = weights @ np.where(self.n[:, None] > 0, self.value, 0.0)
        value[used @ (self.n == 0) > 0] = np.nan
        # How far every cluster pulls every sum, `[n_sums, n_clusters, n_columns]`.
        by_cluster = indicator(self._cluster, int(self._cluster.max(initial=-1)) + 1)
        pulls = np.stack([np.asarray(by_cluster @ (row[self._cell, None] * self._pulls)) for row in weights])
        counts = np.array([len(np.unique(self._cluster[row[self._cell] != 0])) for row in weights])
        few = (counts < FEWEST) | (used @ (self.people < 2).astype(np.float64) > 0)
        parts = weights[:, :, None] ** 2 * self._variance
        squares = (parts**2 / np.maximum(self.people - 1, 1)[:, None]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.where(squares > 0, parts.sum(axis=1) ** 2 / squares, np.inf)
        free = np.minimum(counts[:, None] - 1.0, free)
        return _bounds(value, (pulls**2).sum(axis=1), free, few, (used @ self.n).astype(int))


def _bounds(value: Array, variance: Array, free: Array, few: Mask, n: Ints) -> Estimates:
    """Student's bounds with `free` degrees of freedom; none for those with too few people."""
    error, free = np.sqrt(variance), np.broadcast_to(np.maximum(free, 1.0), variance.shape)
    error[few] = np.nan
    margin = special.stdtrit(free, 0.975) * error
    return Estimates(value, value - margin, value + margin, n)


def indicator(codes: Integers, count: int) -> Any:
    """A sparse matrix `[count, len(codes)]` with a 1 where an entry has that code."""
    ones = np.ones(len(codes))
    return sparse.csr_array((ones, (codes, np.arange(len(codes)))), shape=(count, len(codes)))


def polynomial_weights(places: AnyArray, degree: int = 2) -> Array:
    """The matrix that turns values at `places` into those of the least-squares polynomial through them."""
    centred = (places - places.mean()) / (np.ptp(places) or 1.0)
    powers = np.vander(centred, min(degree, len(places) - 1) + 1)
    return np.asarray(powers @ np.linalg.pinv(powers))


class BySeed(NamedTuple):
    """One number a seed and column, of the seeds that have any; `sets` counts the matched sets behind them."""

    seeds: Integers
    values: Array
    sets: int


def differences(values: AnyArray, sets: Integers, side: Integers) -> tuple[Ints, Array]:
    """Of every set with both sides: mean of the images with `side` 1 less mean of those with −1."""
    n_sets = int(np.max(sets, initial=-1)) + 1
    values = _columns(values)
    upper, lower = (_means(values, np.where(side == sign, sets, -1), n_sets) for sign in (1, -1))
    gaps = upper - lower
    both = np.flatnonzero(~np.isnan(gaps).all(axis=1))
    return both, gaps[both]


def slopes(values: AnyArray, sets: Integers, levels: Array) -> tuple[Ints, Array]:
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


def curvatures(values: AnyArray, sets: Integers, levels: Array) -> tuple[Ints, Array]:
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


def by_seed(gaps: Array, seeds: Integers) -> BySeed:
    """Sets averaged within their seed; `seeds[i]` is the seed of row i of `gaps`."""
    known, codes = np.unique(seeds, return_inverse=True)
    return BySeed(known, _means(gaps, codes, len(known)), len(gaps))


def combined(parts: Sequence[BySeed], weights: Array) -> BySeed:
    """The weighted sum of the parts, of the seeds that all parts with a weight have."""
    used = [(part, weight) for part, weight in zip(parts, weights, strict=True) if weight]
    shared = reduce(np.intersect1d, (part.seeds for part, _ in used))
    total = sum(weight * part.values[np.searchsorted(part.seeds, shared)] for part, weight in used)
    return BySeed(shared, np.asarray(total), min(part.sets for part, _ in used))


def _columns(values: AnyArray) -> Array:
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def _means(values: Array, codes: Integers, count: int) -> Array:
    """Mean of the rows of each code, `[count, n_columns]`; NaN for a code without rows, −1 belongs to none."""
    inside = np.flatnonzero(codes >= 0)
    belongs = indicator(codes[inside], count)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(belongs @ values[inside]) / np.bincount(codes[inside], minlength=count)[:, None]


class Shares(NamedTuple):
    """Of every attribute (rows) and column the share of variance, and what is left over."""

    names: list[str]
    share: Array
    rest: Array


def variance_shares(values: AnyArray, factors: Mapping[str, AnyArray]) -> Shares | None:
    """Shares of each factor in every column of `values`; None where no factor varies or too few rows are there."""
    values = _columns(values)
    levels = {name: _levels(labels) for name, labels in factors.items()}
    levels = {name: columns for name, columns in levels.items() if columns.shape[1]}
    total = ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    left, rank = _residual(values, list(levels.values()))
    free = len(values) - rank
    if not levels or free < 1:
        return None
    error, shares = left / free, []
    for name in levels:
        without, smaller = _residual(values, [columns for other, columns in levels.items() if other != name])
        with np.errstate(divide="ignore", invalid="ignore"):
            shares.append((without - left - (rank - smaller) * error) / (total + error))
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = free * error / total
    return Shares(list(levels), np.array(shares), rest)


def _levels(labels: AnyArray) -> Array:
    _, codes = np.unique(labels, return_inverse=True)
    return np.asarray(codes[:, None] == np.arange(1, codes.max(initial=0) + 1), dtype=np.float64)


def _residual(values: Array, columns: list[Array]) -> tuple[Array, int]:
    fit = np.concatenate([np.ones((len(values), 1)), *columns], axis=1)
    solution, _, rank, _ = np.linalg.lstsq(fit, values, rcond=None)
    return np.asarray(((values - fit @ solution) ** 2).sum(axis=0)), int(rank)


class Pooled(NamedTuple):
    """Pooled means with their standard errors, and the spread between groups that was found."""

    mean: Array
    error: Array
    overall: float
    spread: float  # standard deviation of the true group means: 0 means that groups differ by no more than their errors


def partial_pooling(means: Array, errors: Array) -> Pooled:
    """Pooled means of groups with known standard errors; the spread by Paule and Mandel's equation."""

    def excess(variance: float) -> float:
        """Of the spread of the means over what their errors and this variance between groups would give."""
        weight = 1 / (errors**2 + variance)
        return float((weight * (means - (weight * means).sum() / weight.sum()) ** 2).sum()) - (len(means) - 1)

    most = max(2 * float(np.var(means)) * len(means), 1e-12)  # twice what always suffices: rounding must not reach it
    variance = float(brentq(excess, 0.0, most, xtol=1e-300)) if excess(0.0) > 0 else 0.0
    weight = 1 / (errors**2 + variance)
    overall = float((weight * means).sum() / weight.sum())
    own = variance / (variance + errors**2)
    # The error of a pooled mean: what is left of its own, its share of the overall mean's, and, after Morris (1983),
    # what comes of not knowing the spread.
    unknown_spread = 2 / max(len(means) - 3, 1) * ((1 - own) * (means - overall)) ** 2
    error = np.sqrt(own * errors**2 + (1 - own) ** 2 / weight.sum() + unknown_spread)
    return Pooled(own * means + (1 - own) * overall, error, overall, float(np.sqrt(variance)))
