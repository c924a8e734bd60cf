"""Tests of group differences for many columns at once: group moments come from one matrix product, never a loop.

Pure functions: arrays in, small named results out. Every column is one question (a trait in one wording); rows are
images. Missing cells (NaN) count for nothing.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import special, stats
from scipy.optimize import elementwise

from beholder.core.types import AnyArray, Array, Ints
from beholder.metrics.intervals import Estimate, studentised_interval, studentised_tails

BLOCK_CELLS, KEPT_CELLS = 1 << 22, 1 << 24
"""Cells worked on at once, and up to how many cells blocks are kept for the next grouping."""
MOST = 1e6
"""Sum of squares between groups, over the variance within, up to which a share has an interval: beyond, it is 1."""
GROUPED_CELLS = 1 << 18  # memberships of rows in groups held at once


class Moments(NamedTuple):
    """Of every group in every column: how many, mean, unbiased variance. `[n_groups, n_columns]` each."""

    groups: list[str]
    size: Array
    mean: Array
    variance: Array

    @property
    def overall(self) -> Array:
        """Mean over all rows, `[n_columns]`."""
        return np.asarray((self.size * self.mean).sum(axis=0) / self.size.sum(axis=0))

    @property
    def overall_variance(self) -> Array:
        """Unbiased variance over all rows, `[n_columns]`."""
        _, _, total, _, _ = _sums_of_squares(self)
        return np.asarray(total / (self.size.sum(axis=0) - 1))


class GroupTest(NamedTuple):
    """A statistic, its degrees of freedom and its p-value in every column."""

    statistic: Array
    df_between: Array
    df_within: Array
    p_value: Array


class Columns:
    """Many columns made ready once, so that moments of any grouping of their rows are matrix products.

    Values are centred first, so that variances keep their digits. Columns are worked on in blocks, which are kept
    while they are small: memory does not grow past a few hundred megabytes whatever the number of rows.
    """

    def __init__(self, values: AnyArray, rows: Ints | None = None) -> None:
        self._values, self._rows = values, rows
        length = len(values) if rows is None else len(rows)
        width = max(1, BLOCK_CELLS // max(1, length))
        self._blocks = [slice(start, start + width) for start in range(0, values.shape[1], width)]
        self._kept: dict[int, _Block] = {}
        self._keep = length * values.shape[1] <= KEPT_CELLS

    def moments(self, codes: Ints, groups: list[str]) -> Moments:
        """Moments of the groups; `codes[i]` is the place of row i's group in `groups`, or -1 for none."""
        return next(self.moments_of_each(codes[None], groups))

    def moments_of_each(self, codes: Ints, groups: list[str]) -> Iterator[Moments]:
        """Moments of several groupings, `codes[n_groupings, n_rows]`: fewer and larger matrix products."""
        step = max(1, GROUPED_CELLS // max(1, codes.shape[1] * len(groups)))
        for start in range(0, len(codes), step):
            part = codes[start : start + step]
            belongs = (np.arange(len(groups))[None, :, None] == part[:, None, :]).astype(np.float64)
            members = belongs.reshape(-1, part.shape[1])
            parts = [self._block(place).moments(members) for place in range(len(self._blocks))]
            size, mean, variance = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
            for k in range(len(part)):
                own = slice(k * len(groups), (k + 1) * len(groups))
                yield Moments(list(groups), size[own], mean[own], variance[own])

    def _block(self, place: int) -> "_Block":
        if place in self._kept:
            return self._kept[place]
        part = self._values[:, self._blocks[place]]
        block = _Block(np.asarray(part if self._rows is None else part[self._rows], dtype=np.float64))
        if self._keep:
            self._kept[place] = block
        return block


class _Block:
    def __init__(self, values: Array) -> None:
        missing = np.isnan(values)
        self._present = (~missing).astype(np.float64) if missing.any() else None
        self._centre = np.where(missing, 0.0, values).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
        self._centred = values - self._centre
        self._centred[missing] = 0.0
        self._squares = self._centred**2

    def moments(self, belongs: Array) -> tuple[Array, Array, Array]:
        whole = np.repeat(belongs.sum(axis=1)[:, None], self._centred.shape[1], axis=1)
        size = whole if self._present is None else belongs @ self._present
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (belongs @ self._centred) / size
            variance = (belongs @ self._squares - size * mean**2) / (size - 1)
        return size, mean + self._centre, np.maximum(variance, 0.0)


def welch_t(moments: Moments) -> GroupTest:
    """Welch's t of the first group against the second; positive where the first has the higher mean."""
    share = moments.variance / moments.size
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = (moments.mean[0] - moments.mean[1]) / np.sqrt(share.sum(axis=0))
        df = share.sum(axis=0) ** 2 / (share**2 / (moments.size - 1)).sum(axis=0)
    return GroupTest(statistic, np.ones_like(df), df, 2 * special.stdtr(df, -np.abs(statistic)))


def welch_anova(moments: Moments) -> GroupTest:
    """Welch's F over all groups, without the assumption of equal variances."""
    k = len(moments.groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = moments.size / moments.variance
        relative = weight / weight.sum(axis=0)
        spread = (weight * (moments.mean - (relative * moments.mean).sum(axis=0)) ** 2).sum(axis=0) / (k - 1)
        unequal = ((1 - relative) ** 2 / (moments.size - 1)).sum(axis=0)
        statistic = spread / (1 + 2 * (k - 2) / (k**2 - 1) * unequal)
        df_within = (k**2 - 1) / (3 * unequal)
    df_between = np.full_like(df_within, k - 1)
    return GroupTest(statistic, df_between, df_within, special.fdtrc(df_between, df_within, statistic))


def welch(moments: Moments) -> GroupTest:
    """Welch's t for two groups, Welch's F for more."""
    return welch_t(moments) if len(moments.groups) == 2 else welch_anova(moments)


def mean_margins(size: Array, variance: Array, level: float = 0.95) -> Array:
    """Half the width of Student's interval of a mean; NaN where fewer than two values tell a spread."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(special.stdtrit(size - 1, (1 + level) / 2) * np.sqrt(variance / size))


def omega_squared(moments: Moments) -> Array:
    """Share of variance between groups in every column, corrected for chance: 0 none, 1 all; may fall below 0."""
    between, within, total, df_between, df_within = _sums_of_squares(moments)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = within / df_within
        return np.asarray((between - df_between * error) / (total + error))


class Bounds(NamedTuple):
    """An interval in every column; NaN where there is too little to say."""

    low: Array
    high: Array


def omega_squared_interval(moments: Moments, level: float = 0.95) -> Bounds:
    """Bounds of the share of variance between groups: the shares under which these means would not surprise."""
    # Where groups spread alike this is the usual inversion of the noncentral F. Groups' P(Yes) do not: the sum of
    # squares between them is then a mixture, met in mean and variance by a scaled noncentral F (as Brown and Forsythe
    # have it without an effect). Never below 0, so that a share of chance has the lower bound 0.
    spread = _Spread.of(moments)
    found = [spread.noncentrality((1 + sign * level) / 2) for sign in (1, -1)]
    n = moments.size.sum(axis=0)
    return Bounds(*(each / (each + n) for each in found))


class _Spread(NamedTuple):
    """What the sum of squares between groups does when their spreads differ, in units of the variance within."""

    between: Array
    first: Array  # what chance alone adds to it: the groups' variances, `k - 1` where all are alike
    second: Array  # half the variance that comes of chance alone
    shown: Array  # variance of the groups that differ, weighted by how much they do
    df_within: Array

    @classmethod
    def of(cls, moments: Moments) -> "_Spread":
        weight = moments.size / moments.size.sum(axis=0)
        off = moments.size * (moments.mean - moments.overall) ** 2
        _, within, _, _, df_within = _sums_of_squares(moments)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = moments.variance / (within / df_within)
            inside = weight * variance
            first = ((1 - weight) * variance).sum(axis=0)
            second = ((1 - 2 * weight) * variance**2).sum(axis=0) + inside.sum(axis=0) ** 2
            between = off.sum(axis=0) / (within / df_within)
            alike = off.sum(axis=0) == 0
            shown = np.where(alike, second / first, (off * variance).sum(axis=0) / off.sum(axis=0))
            df_within = inside.sum(axis=0) ** 2 / (inside**2 / (moments.size - 1)).sum(axis=0)
        return cls(between, first, second, shown, df_within)

    def chance(self, noncentrality: Array) -> Array:
        """The probability of means that lie no further apart than these."""
        scale = (self.second + 2 * self.shown * noncentrality) / (self.first + 2 * noncentrality)
        f = self.between / self.first
        return np.asarray(special.ncfdtr(self.first / scale, self.df_within, noncentrality / scale, f))

    def noncentrality(self, probability: float) -> Array:
        """The λ that gives means like these this probability; 0 where they have less without any difference."""
        # `scipy.special.ncfdtrinc` is off by up to half a per cent and ends at 10,000, so the root is found here.
        alone = self.chance(np.zeros_like(self.between))
        found = np.where(np.isfinite(alone) & (self.between < MOST), 0.0, np.nan)
        there = np.flatnonzero((alone > probability) & (self.between < MOST))
        mine = _Spread(*(part[there] for part in self))
        wide = 2 * mine.second + 4 * mine.shown * mine.between + 2 * mine.between**2 / mine.df_within
        far = mine.between + 20 * np.maximum(mine.shown, 1) + 6 * np.sqrt(wide)
        root = elementwise.find_root(
            lambda noncentrality, *parts: _Spread(*parts).chance(noncentrality) - probability,
            (np.zeros_like(far), far),
            args=tuple(mine),
            tolerances={"xrtol": 1e-8},
        )
        found[there] = np.where(root.success, root.x, np.nan)
        return found


def _sums_of_squares(moments: Moments) -> tuple[Array, Array, Array, int, Array]:
    between = (moments.size * (moments.mean - moments.overall) ** 2).sum(axis=0)
    within = ((moments.size - 1) * moments.variance).sum(axis=0)
    k = len(moments.groups)
    return between, within, between + within, k - 1, moments.size.sum(axis=0) - k


def repeated_measures_anova(scores: AnyArray) -> GroupTest:
    """Do the wordings differ? `scores[n_rows, n_columns, n_wordings]`, every row rated in every wording."""
    # The univariate F without a sphericity correction, as `statsmodels.AnovaRM` gives it.
    n, _, k = scores.shape
    parts = [_wording_sums(np.asarray(part, dtype=np.float64)) for part in _column_blocks(scores)]
    wording, error = (np.concatenate(sums) for sums in zip(*parts, strict=True))
    df_between, df_within = k - 1, (k - 1) * (n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = (wording / df_between) / (error / df_within)
    shape = np.ones_like(statistic)
    p_value = special.fdtrc(df_between, df_within, statistic)
    return GroupTest(statistic, df_between * shape, df_within * shape, p_value)


def _wording_sums(scores: Array) -> tuple[Array, Array]:
    """Sums of squares between wordings and of the residual, in every column."""
    centred = scores - scores.mean(axis=(0, 2))[:, None]
    by_wording, by_row = centred.mean(axis=0), centred.mean(axis=2)
    centred -= by_row[:, :, None]
    centred -= by_wording[None]
    return len(scores) * (by_wording**2).sum(axis=1), (centred**2).sum(axis=(0, 2))


def _column_blocks(scores: AnyArray) -> Iterator[AnyArray]:
    width = max(1, BLOCK_CELLS // max(1, scores.shape[0] * scores.shape[2]))
    yield from (scores[:, start : start + width] for start in range(0, scores.shape[1], width))


def friedman(scores: AnyArray) -> GroupTest:
    """Friedman's test across wordings, ties corrected: `scores[n_rows, n_columns, n_wordings]`."""
    n, _, k = scores.shape
    parts = [_rank_sums(part) for part in _column_blocks(scores)]
    rank_sums, ties = (np.concatenate(sums) for sums in zip(*parts, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = 1 - ties / (n * k * (k**2 - 1))
        statistic = (12 / (n * k * (k + 1)) * (rank_sums**2).sum(axis=1) - 3 * n * (k + 1)) / correction
    df = np.full_like(statistic, k - 1)
    return GroupTest(statistic, df, np.full_like(statistic, np.nan), special.chdtrc(df, statistic))


def _rank_sums(scores: AnyArray) -> tuple[Array, Array]:
    """Sum of each wording's ranks over the rows, and what ties take from their variance, in every column."""
    _, columns, k = scores.shape
    rank_sums, ties = np.zeros((columns, k)), np.zeros(columns)
    for j in range(k):
        level = (scores[:, :, [j]] == scores).sum(axis=2)
        rank_sums[:, j] = ((scores[:, :, [j]] > scores).sum(axis=2) + (level + 1) / 2).sum(axis=0)
        ties += (level**2 - 1).sum(axis=0)  # summed over a tie group of t members: t (t² - 1)
    return rank_sums, ties


ALPHA = 0.05
DIFFERENCE, EQUIVALENT, SMALL, UNDECIDED = "difference", "equivalent", "difference below δ", "undecided"
VERDICTS = {
    DIFFERENCE: "a difference is shown, and not shown to be smaller than δ",
    SMALL: "a difference is shown, and shown to be smaller than δ",
    EQUIVALENT: "shown to be smaller than δ; none is shown to be there",
    UNDECIDED: "neither is shown: too few images to say",
}


class Equivalence(NamedTuple):
    """p of the two one-sided tests, and the smallest δ that would be shown at 5 %."""

    p_value: Array
    bound: Array


def welch_equivalence(moments: Moments, delta: float) -> Equivalence:
    """Are all groups within δ of each other, in every column? The worst pair decides, so no correction is needed."""
    # The bound is the largest over pairs of |difference| + t · error (Welch's degrees of freedom).
    share = moments.variance / moments.size
    worst, bound = np.zeros(moments.mean.shape[1]), np.zeros(moments.mean.shape[1])
    for i, j in combinations(range(len(moments.groups)), 2):
        difference, squared = moments.mean[i] - moments.mean[j], share[i] + share[j]
        with np.errstate(divide="ignore", invalid="ignore"):
            df = squared**2 / (share[i] ** 2 / (moments.size[i] - 1) + share[j] ** 2 / (moments.size[j] - 1))
            error = np.sqrt(squared)
            away = (delta - np.abs(difference)) / error
        worst = np.maximum(worst, special.stdtr(df, -away))
        bound = np.maximum(bound, np.abs(difference) + special.stdtrit(df, 1 - ALPHA) * error)
    return Equivalence(worst, bound)


def ratio_equivalence(estimate: Estimate, delta: float) -> Equivalence:
    """Is a ratio between 1 / (1 + δ) and 1 + δ? From its studentised draws on the log scale; the bound is a δ too."""
    above = studentised_tails(estimate, 1 / (1 + delta), scale="log").above
    below = studentised_tails(estimate, 1 + delta, scale="log").below
    low, high = studentised_interval(estimate, 1 - 2 * ALPHA, scale="log")
    return Equivalence(np.array(max(above, below)), np.array(max(high, 1 / low) - 1 if low > 0 else np.inf))


def verdict(p_difference: float | None, p_equivalence: float | None) -> str:
    """Which of four things is shown at 5 %; a test that could not be made shows nothing."""
    differs, same = (p is not None and p <= ALPHA for p in (p_difference, p_equivalence))
    if differs:
        return SMALL if same else DIFFERENCE
    return EQUIVALENT if same else UNDECIDED


def benjamini_hochberg(p_values: AnyArray) -> Array:
    """Along the last axis: calling those ≤ q significant keeps the expected share of false calls at q; NaN stays."""

    def adjusted(row: Array) -> Array:
        made, there = np.full_like(row, np.nan), ~np.isnan(row)
        made[there] = stats.false_discovery_control(row[there]) if there.any() else ()
        return made

    return np.apply_along_axis(adjusted, -1, np.asarray(p_values, dtype=np.float64))


def simes(p_values: AnyArray) -> Array:
    """One p-value for "at least one of these holds", valid for positively dependent tests such as wordings."""
    ordered = np.sort(np.asarray(p_values, dtype=np.float64), axis=-1)  # NaN sort to the end
    known = (~np.isnan(ordered)).sum(axis=-1, keepdims=True)
    ranks = np.arange(1, ordered.shape[-1] + 1)
    scaled = np.where(np.isnan(ordered), np.inf, ordered * known / ranks)
    best = scaled.min(axis=-1)
    return np.where(np.isinf(best), np.nan, best)
