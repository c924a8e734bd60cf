"""Tests of group differences for many columns at once: group moments come from one matrix product, never a loop.

Pure functions: arrays in, small named results out. Every column is one question (a trait in one wording); rows are
images. Missing cells (NaN) count for nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

Array = npt.NDArray[np.float64]


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


class GroupTest(NamedTuple):
    """A statistic, its degrees of freedom and its p-value in every column."""

    statistic: Array
    df_between: Array
    df_within: Array
    p_value: Array


class Columns:
    """Many columns made ready once, so that moments of any grouping of their rows are one matrix product.

    Values are centred first, so that variances keep their digits.
    """

    def __init__(self, values: Array) -> None:
        missing = np.isnan(values)
        self._partial = bool(missing.any())
        self._centre = np.nan_to_num(np.nanmean(values, axis=0)) if self._partial else values.mean(axis=0)
        centred = np.where(missing, 0.0, values - self._centre)
        present = [(~missing).astype(np.float64)] if self._partial else []
        self._stacked = np.concatenate([centred, centred**2, *present], axis=1)
        self._width = values.shape[1]

    def moments(self, codes: npt.NDArray[np.int_], groups: list[str]) -> Moments:
        """Moments of the groups; `codes[i]` is the place of row i's group in `groups`, or -1 for none."""
        belongs = (np.arange(len(groups))[:, None] == codes[None, :]).astype(np.float64)
        products = belongs @ self._stacked
        sums, squares = products[:, : self._width], products[:, self._width : 2 * self._width]
        whole = np.repeat(belongs.sum(axis=1)[:, None], self._width, axis=1)
        size = products[:, 2 * self._width :] if self._partial else whole
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = sums / size
            variance = (squares - size * mean**2) / (size - 1)
        return Moments(list(groups), size, mean + self._centre, np.maximum(variance, 0.0))


def group_codes(labels: npt.NDArray[Any], groups: list[str]) -> npt.NDArray[np.int_]:
    """Each label's place among the groups, -1 for a label that is none of them."""
    place = {group: code for code, group in enumerate(groups)}
    return np.array([place.get(label, -1) for label in labels.tolist()], dtype=int)


def group_moments(values: Array, labels: npt.NDArray[Any], groups: list[str]) -> Moments:
    """Moments of every group in every column."""
    return Columns(values).moments(group_codes(labels, groups), groups)


def welch_t(moments: Moments) -> GroupTest:
    """Welch's t of the first group against the second; positive where the first has the higher mean."""
    share = moments.variance / moments.size
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = (moments.mean[0] - moments.mean[1]) / np.sqrt(share.sum(axis=0))
        df = share.sum(axis=0) ** 2 / (share**2 / (moments.size - 1)).sum(axis=0)
    p_value = 2 * special.stdtr(df, -np.abs(statistic))
    return GroupTest(statistic, np.ones_like(df), df, p_value)


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


def omega_squared(moments: Moments) -> Array:
    """Share of variance between groups in every column, corrected for chance: 0 none, 1 all; may fall below 0."""
    between, within, total, df_between, df_within = _sums_of_squares(moments)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = within / df_within
        return np.asarray((between - df_between * error) / (total + error))


def _sums_of_squares(moments: Moments) -> tuple[Array, Array, Array, int, Array]:
    between = (moments.size * (moments.mean - moments.overall) ** 2).sum(axis=0)
    within = ((moments.size - 1) * moments.variance).sum(axis=0)
    k = len(moments.groups)
    return between, within, between + within, k - 1, moments.size.sum(axis=0) - k


def repeated_measures_anova(scores: Array) -> GroupTest:
    """Do the wordings differ? `scores[n_rows, n_columns, n_wordings]`, every row rated in every wording.

    The univariate F without a sphericity correction, as `statsmodels.AnovaRM` gives it.
    """
    n, _, k = scores.shape
    grand = scores.mean(axis=(0, 2))
    centred = scores - grand[:, None]
    by_wording, by_row = centred.mean(axis=0), centred.mean(axis=2)
    wording = n * (by_wording**2).sum(axis=1)
    residual = centred - by_row[:, :, None] - by_wording[None]
    error = (residual**2).sum(axis=(0, 2))
    df_between, df_within = k - 1, (k - 1) * (n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = (wording / df_between) / (error / df_within)
    shape = np.ones_like(statistic)
    p_value = special.fdtrc(df_between, df_within, statistic)
    return GroupTest(statistic, df_between * shape, df_within * shape, p_value)


def friedman(scores: Array) -> GroupTest:
    """Friedman's test across wordings, ties corrected: `scores[n_rows, n_columns, n_wordings]`."""
    n, columns, k = scores.shape
    rank_sums, ties = np.zeros((columns, k)), np.zeros(columns)
    for j in range(k):
        equal = scores[:, :, [j]] == scores
        level = equal.sum(axis=2)
        rank_sums[:, j] = ((scores[:, :, [j]] > scores).sum(axis=2) + (level + 1) / 2).sum(axis=0)
        ties += (level**2 - 1).sum(axis=0)  # summed over a tie group of t members: t (t² - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = 1 - ties / (n * k * (k**2 - 1))
        statistic = (12 / (n * k * (k + 1)) * (rank_sums**2).sum(axis=1) - 3 * n * (k + 1)) / correction
    df = np.full_like(statistic, k - 1)
    return GroupTest(statistic, df, np.full_like(statistic, np.nan), special.chdtrc(df, statistic))
