"""Gaps between groups, for many columns at once, with intervals that hold for all of them together.

The widest of 100 traits and 45 pairs of groups is picked because it is the widest. So its interval comes from the
widest that shuffled labels give (max-t), and so does its p-value. t-values are first put on a normal scale by their
degrees of freedom: small groups scatter more, and must not widen the intervals of large ones. Pictures of one person
count together (cluster-robust errors). Pure functions: arrays in, small named results out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from beholder.metrics.group_tests import Moments
from beholder.metrics.multiplicity import ALPHA
from beholder.metrics.person_shuffles import PersonShuffles

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int_]
NOTHING = 1e-13
"""Differences of probabilities below this are rounding errors."""
CELLS = 1 << 21
"""Numbers worked on at once: shuffles come in parts of this size."""


class CellMeans(NamedTuple):
    """Means of cells of images: `[n_groupings, n_cells, n_columns]` each; NaN where a cell has too few."""

    size: Array
    people: Array
    mean: Array
    variance: Array
    """Of the mean, from the sums of people's own deviations."""


class Pictures:
    """Values of pictures, `[n_pictures, n_columns]`, made ready for many groupings; NaN cells count for nothing."""

    def __init__(self, values: npt.NDArray[np.floating], people: Codes | None = None) -> None:
        values = np.asarray(values, dtype=np.float64)
        missing = np.isnan(values)
        self._there = (~missing).astype(np.float64) if missing.any() else None
        with np.errstate(invalid="ignore", divide="ignore"):
            self._centre = np.where(missing, 0.0, values).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
        self._values = np.where(missing, 0.0, values - self._centre)
        self._values[np.abs(self._values) < NOTHING] = 0.0
        self._squares = self._values**2
        self.repeated = np.zeros(0, dtype=int)
        """Pictures of people who have several."""
        if people is not None:
            _, self._person, count = np.unique(people, return_inverse=True, return_counts=True)
            self.repeated = np.flatnonzero(count[self._person] > 1)

    def __len__(self) -> int:
        return len(self._values)

    def moments(self, cells: Codes, n_cells: int) -> CellMeans:
        """Of every grouping: `cells[k, i]` is the cell of picture i in grouping k, −1 for none."""
        belongs = (np.arange(n_cells)[None, :, None] == cells[:, None, :]).astype(np.float64)
        size = belongs.sum(axis=2)[..., None] if self._there is None else belongs @ self._there
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (belongs @ self._values) / size
            squares, people = belongs @ self._squares - size * mean**2, size
            if self.repeated.size:
                together, fewer = self._together(cells, n_cells, mean)
                squares, people = squares + together, size - fewer
            squares = np.where(np.abs(squares) < NOTHING**2, 0.0, np.maximum(squares, 0.0))
            variance = np.where(people > 1, people / (people - 1) * squares / size**2, np.nan)
        wide = mean + self._centre
        return CellMeans(np.broadcast_to(size, wide.shape), np.broadcast_to(people, wide.shape), wide, variance)

    def _together(self, cells: Codes, n_cells: int, mean: Array) -> tuple[Array, Array]:
        """What pictures of one person in one cell add to its sum of squares, and by how many they outnumber people."""
        rows, people = self.repeated, self._person[self.repeated]
        own = cells[:, rows]
        grouping, place = np.nonzero(own >= 0)
        cell = grouping * n_cells + own[grouping, place]
        key = cell * (int(self._person.max()) + 1) + people[place]
        keys, member = np.unique(key, return_inverse=True)
        gather = sparse.csr_array((np.ones(len(member)), (member, place)), shape=(len(keys), len(rows)))
        sums, squares = gather @ self._values[rows], gather @ self._squares[rows]
        count = gather.sum(axis=1)[:, None] if self._there is None else gather @ self._there[rows]
        cell_of = keys // (int(self._person.max()) + 1)
        centre = np.nan_to_num(mean.reshape(-1, mean.shape[2])[cell_of])
        apart = squares - 2 * centre * sums + count * centre**2
        cross = (sums - count * centre) ** 2 - apart
        spread = sparse.csr_array(
            (np.ones(len(keys)), (cell_of, np.arange(len(keys)))), shape=(cells.shape[0] * n_cells, len(keys))
        )
        shape = (cells.shape[0], n_cells, -1)
        return (spread @ cross).reshape(shape), (spread @ np.maximum(count - 1, 0.0)).reshape(shape)


def clustered_moments(values: npt.NDArray[np.floating], codes: Codes, groups: list[str], people: Codes) -> Moments:
    """Moments for Welch's tests where people have several pictures: `size` counts people.

    The variance is such that variance over size is that of the mean, so every test of `group_tests` takes them.
    """
    found = Pictures(values, people).moments(codes[None], len(groups))
    return Moments(groups, found.people[0].copy(), found.mean[0], found.variance[0] * found.people[0])


class GroupMeans(NamedTuple):
    """Means of groups, the variances of these means and their degrees of freedom: `[n_groups, n_columns]` each."""

    mean: Array
    variance: Array
    freedom: Array


def _standardised(found: CellMeans, groups: int, weights: Array) -> GroupMeans:
    """Groups' means over strata, each stratum with the same weight in every group; with one stratum, the means."""
    shape = (found.mean.shape[0], groups, len(weights), found.mean.shape[2])
    share = weights[None, None, :, None]
    mean = (share * found.mean.reshape(shape)).sum(axis=2)
    parts = share**2 * found.variance.reshape(shape)
    variance = parts.sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = variance**2 / (parts**2 / (found.people.reshape(shape) - 1)).sum(axis=2)
    return GroupMeans(mean, variance, np.where(variance > 0, freedom, np.inf))


def normal_scale(t: Array, freedom: Array) -> Array:
    """Student's t as the normal deviate of the same probability (Wallace's approximation).

    >>> normal_scale(np.array(2.571), np.array(5.0)).round(2)
    np.float64(1.96)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        large = np.where(np.isinf(freedom), np.abs(t), np.sqrt(freedom * np.log1p(t**2 / freedom)))
        factor = np.where(np.isinf(freedom), 1.0, (8 * freedom + 1) / (8 * freedom + 3))
    return np.asarray(factor * large)


def student_scale(z: float, freedom: Array) -> Array:
    """The t that `normal_scale` turns into `z`."""
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.where(np.isinf(freedom), 1.0, (8 * freedom + 1) / (8 * freedom + 3))
        return np.asarray(np.where(np.isinf(freedom), z, np.sqrt(freedom * np.expm1((z / factor) ** 2 / freedom))))


class Pairs(NamedTuple):
    """The gap of one pair of groups in every column, with its bounds and its p-value."""

    gap: Array
    low: Array
    high: Array
    p_value: Array
    at_most: npt.NDArray[np.bool_]
    """Where the p-value is the smallest that the shuffles can give."""


class Gaps(NamedTuple):
    """Groups' means and what shuffles make of them."""

    groups: GroupMeans
    shuffled: Array
    """The widest gap of any pair and column after each shuffle, on the normal scale, in ascending order."""
    residual: Array
    """The same for residuals, which have no group differences whatever the data: for intervals."""
    tests: int

    def widest(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The groups with the highest and with the lowest mean in every column; a group without a mean is both."""
        return self.groups.mean.argmax(axis=0), self.groups.mean.argmin(axis=0)

    def pair(self, higher: npt.NDArray[np.intp], lower: npt.NDArray[np.intp]) -> Pairs:
        """One pair in every column; bounds and p-values hold for all columns, pairs and `tests` together."""
        columns = np.arange(self.groups.mean.shape[1])
        gap = self.groups.mean[higher, columns] - self.groups.mean[lower, columns]
        first, second = (GroupMeans(*(part[end, columns] for part in self.groups)) for end in (higher, lower))
        error, freedom = _pair_error(first, second)
        margin = student_scale(self.critical, freedom) * error
        deviate = _deviate(np.abs(gap), error, freedom)
        nothing = np.isnan(error) | ((np.abs(gap) < NOTHING) & (error == 0)) | (len(self.shuffled) == 0)
        p_value, at_most = rank_p_values(deviate, self.shuffled, self.tests)
        return Pairs(gap, gap - margin, gap + margin, np.where(nothing, np.nan, p_value), at_most & ~nothing)

    def differ(self) -> tuple[Array, npt.NDArray[np.bool_]]:
        """p-value of "some pair of groups differs" in every column, corrected as `pair` is; and where it is a bound."""
        deviates = _deviates(GroupMeans(*(part[None] for part in self.groups)))[0].max(axis=0)
        p_value, at_most = rank_p_values(deviates, self.shuffled, self.tests)
        same = ~(self.groups.variance > 0).any(axis=0) & (np.ptp(self.groups.mean, axis=0) < NOTHING)
        nothing = same | (len(self.shuffled) == 0)
        return np.where(nothing, np.nan, p_value), at_most & ~nothing

    @property
    def critical(self) -> float:
        """The deviate beyond which an interval leaves 0 out; infinite with too few shuffles."""
        return critical_value(self.residual, self.tests)


def critical_value(residual: Array, tests: int = 1) -> float:
    """The smallest deviate whose corrected rank among these (ascending) is at most ALPHA; infinite with too few."""
    allowed = int(ALPHA * (len(residual) + 1) / tests + 1e-9) - 1
    return float(residual[len(residual) - 1 - allowed]) if allowed >= 0 else np.inf


def rank_p_values(deviates: Array, shuffled: Array, tests: int = 1) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The rank of each number among those of the shuffles (ascending), times `tests`; and where no shuffle reaches it.

    >>> rank_p_values(np.array([0.5, 9.0]), np.arange(1.0, 4.0))
    (array([1.  , 0.25]), array([False,  True]))
    """
    beyond = len(shuffled) - np.searchsorted(shuffled, deviates, side="left")
    return np.minimum(tests * (1.0 + beyond) / (1 + len(shuffled)), 1.0), beyond == 0


def group_gaps(
    values: npt.NDArray[np.floating],
    codes: Codes,
    groups: int,
    rng: np.random.Generator,
    shuffles: int,
    *,
    people: Codes | None = None,
    strata: Codes | None = None,
    tests: int = 1,
) -> Gaps:
    """Every pair of groups in every column of `values[n_pictures, n_columns]`; `codes` of −1 belong to no group.

    People change groups in every shuffle; with `strata`, within their stratum, and each group's mean is over the strata
    with the same weights, those of all pictures. `tests` is how many such comparisons are made in all.
    """
    people = np.arange(len(codes)) if people is None else people
    strata = np.zeros(len(codes), dtype=int) if strata is None else strata
    weights = np.bincount(strata[codes >= 0]) / max((codes >= 0).sum(), 1)
    layers, raw = len(weights), Pictures(values, people)

    def grouped(pictures: Pictures, labels: Codes) -> GroupMeans:
        cells = np.where(labels >= 0, labels * layers + strata, -1)
        return _standardised(pictures.moments(cells, groups * layers), groups, weights)

    means = grouped(raw, codes[None])
    residual = Pictures(_residuals(raw, values, np.where(codes >= 0, codes * layers + strata, -1)), people)
    step = max(1, CELLS // max(1, groups * layers * (len(codes) + 8 * values.shape[1])))
    widest: list[list[Array]] = [[], []]
    for part in PersonShuffles(codes, people, strata).parts(shuffles, rng):
        for start in range(0, len(part), step):
            for kept, pictures in zip(widest, (raw, residual), strict=True):
                deviates = _deviates(grouped(pictures, part[start : start + step]))
                kept.append(deviates.max(axis=(1, 2), initial=0.0))
    shuffled, within = (np.sort(np.concatenate(parts)) if parts else np.zeros(0) for parts in widest)
    return Gaps(GroupMeans(*(part[0] for part in means)), shuffled, within, tests)


def _residuals(pictures: Pictures, values: npt.NDArray[np.floating], cells: Codes) -> Array:
    """Values without the mean of their cell; NaN outside of all cells."""
    means = pictures.moments(cells[None], int(cells.max(initial=0)) + 1).mean[0]
    return np.where(cells[:, None] >= 0, values - means[np.maximum(cells, 0)], np.nan)


def _pair_error(first: GroupMeans, second: GroupMeans) -> tuple[Array, Array]:
    """Standard error of a difference and its degrees of freedom (Welch and Satterthwaite)."""
    squared = first.variance + second.variance
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = first.variance**2 / first.freedom + second.variance**2 / second.freedom
        freedom = np.where(parts > 0, squared**2 / parts, np.inf)
    return np.sqrt(squared), freedom


def _deviate(gap: Array, error: Array, freedom: Array) -> Array:
    """A gap in standard errors, on the normal scale; 0 where there is neither gap nor error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(gap < NOTHING, 0.0, gap / error)
        return np.nan_to_num(normal_scale(t, freedom), nan=0.0, posinf=1e9)


def _deviates(means: GroupMeans) -> Array:
    """Every pair's gap, on the normal scale: `[n_groupings, n_pairs, n_columns]`."""
    first, second = np.triu_indices(means.mean.shape[1], 1)
    ends = [GroupMeans(*(part[:, end] for part in means)) for end in (first, second)]
    return _deviate(np.abs(ends[0].mean - ends[1].mean), *_pair_error(*ends))
