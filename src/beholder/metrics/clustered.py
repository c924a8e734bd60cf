"""Clustered means: group means and curves through them, with intervals that know which images belong together.

Images of one person (a seed) are not independent; the variance is that of the clusters' sums (linearised, as in
survey statistics), the quantile Student's. Where every image is a cluster this is the ordinary interval of a mean.
Pure functions for many columns at once; missing values (NaN) are refused, the caller leaves them out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from beholder.metrics.intervals import FEWEST

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]


class Estimates(NamedTuple):
    """Values with 95 % intervals, p of "it is 0" and the images behind them; NaN below five clusters."""

    value: Array
    low: Array
    high: Array
    n: npt.NDArray[np.int_]
    p_value: Array


class CellMeans:
    """Means of `values[n_images, n_columns]` in cells; `cells[i]` is image i's cell, −1 for none."""

    def __init__(self, values: npt.NDArray[Any], cells: Codes, clusters: npt.NDArray[Any], n_cells: int) -> None:
        inside = np.flatnonzero(np.asarray(cells) >= 0)
        values = np.asarray(values, dtype=np.float64).reshape(len(cells), -1)[inside]
        cells = np.asarray(cells)[inside]
        self.n = np.bincount(cells, minlength=n_cells)
        belongs = indicator(cells, n_cells)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.value = np.asarray(belongs @ values) / self.n[:, None]
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
        """Weighted sums of the cells' means, a row of `weights[n_sums, n_cells]` each, such as a fitted curve.

        Cells of weight 0 are left aside even where they are empty. One person does not tell how far a cell spreads:
        with such a cell a sum has no interval. Small cells count by their own degrees of freedom (Satterthwaite's).
        """
        weights = np.atleast_2d(weights)
        used = (weights != 0).astype(np.float64)
        value = weights @ np.where(self.n[:, None] > 0, self.value, 0.0)
        value[used @ (self.n == 0) > 0] = np.nan
        variance = (self._pulls_on(weights) ** 2).sum(axis=1)
        free, few = self._people_behind(weights)
        return _bounds(value, variance, free, few, (used @ self.n).astype(int))

    def _pulls_on(self, weights: Array) -> Array:
        """How far every cluster pulls every sum, `[n_sums, n_clusters, n_columns]`."""
        by_cluster = indicator(self._cluster, int(self._cluster.max(initial=-1)) + 1)
        return np.stack([np.asarray(by_cluster @ (row[self._cell, None] * self._pulls)) for row in weights])

    def _people_behind(self, weights: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Degrees of freedom of every sum and column, and which sums have too few people for an interval."""
        counts = np.array([len(np.unique(self._cluster[row[self._cell] != 0])) for row in weights])
        few = (counts < FEWEST) | ((weights != 0) @ (self.people < 2).astype(np.float64) > 0)
        return np.minimum(counts[:, None] - 1.0, self._freedom(weights)), few

    def _freedom(self, weights: Array) -> Array:
        """Satterthwaite's degrees of freedom of every sum and column; without end where nothing varies."""
        parts = weights[:, :, None] ** 2 * self._variance
        squares = (parts**2 / np.maximum(self.people - 1, 1)[:, None]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(squares > 0, parts.sum(axis=1) ** 2 / squares, np.inf))


def _bounds(
    value: Array, variance: Array, free: Array, few: npt.NDArray[np.bool_], n: npt.NDArray[np.int_]
) -> Estimates:
    """Student's bounds with `free` degrees of freedom; none for those with too few people."""
    error, free = np.sqrt(variance), np.broadcast_to(np.maximum(free, 1.0), variance.shape)
    error[few] = np.nan
    margin = special.stdtrit(free, 0.975) * error
    return Estimates(value, value - margin, value + margin, n, two_sided(value, error, free))


def two_sided(value: Array, error: Array, df: npt.NDArray[Any]) -> Array:
    """p of Student's t that the value is 0; NaN without an error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(2 * special.stdtr(df, -np.abs(value / error)))


def indicator(codes: Codes, count: int) -> Any:
    """A sparse matrix `[count, len(codes)]` with a 1 where an entry has that code."""
    ones = np.ones(len(codes))
    return sparse.csr_array((ones, (codes, np.arange(len(codes)))), shape=(count, len(codes)))


def polynomial_weights(places: npt.NDArray[Any], degree: int = 2) -> Array:
    """The matrix that turns values at `places` into those of the least-squares polynomial through them.

    >>> polynomial_weights(np.array([0.0, 1.0]), degree=1).round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    centred = (places - places.mean()) / (np.ptp(places) or 1.0)
    powers = np.vander(centred, min(degree, len(places) - 1) + 1)
    return np.asarray(powers @ np.linalg.pinv(powers))
