"""What the wording of a question changes: the level of P(Yes), and the differences between groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.group_gaps import critical_value
from beholder.studies.gras.groups import Array, Grouped

FOLDS, DRAWS = 20, 999
SENSITIVE = 0.01
"""A trait is sensitive to the wording if P(Yes) moves by at least this much: one point."""


class Estimate(NamedTuple):
    """A share with its 95 % interval; NaN where there is too little to say."""

    value: float
    low: float
    high: float


class WordingShares:
    """How much of the group differences changes with the wording; 0: all wordings agree, 1: all of it changes.

    Squared differences of noisy means are too large, and more so between wordings. So people are split into folds, and
    only products of different folds count: noise has no part in their mean. Leaving out one fold after another
    (jackknife) gives the interval.
    """

    def __init__(self, grouped: Grouped, rng: np.random.Generator) -> None:
        fold, self._folds = _folds(grouped, rng)
        groups, count = len(grouped.groups), self._folds
        cells = np.where(grouped.codes >= 0, grouped.codes * count + fold, -1)
        means = grouped.moments(cells, [str(k) for k in range(groups * count)]).mean
        shape = grouped.answers.p_yes.shape[1:]
        means = means.reshape(groups, count, *shape).swapaxes(0, 1)
        weights = np.bincount(grouped.codes[grouped.codes >= 0], minlength=groups) / (grouped.codes >= 0).sum()
        deviations = means - (weights[None, :, None, None] * means).sum(axis=1, keepdims=True)
        self._total = _products(deviations)
        self._changing = _products(deviations - deviations.mean(axis=3, keepdims=True))

    def share(self, traits: npt.NDArray[np.bool_]) -> Estimate:
        """Over these traits together, each by the size of its differences."""
        known = traits & ~np.isnan(self._total).any(axis=0)
        total, changing = (part[:, known].sum(axis=1) for part in (self._total, self._changing))
        if not known.any() or total[0] <= 0:
            return Estimate(np.nan, np.nan, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = changing / total
        value, again = float(np.clip(shares[0], 0.0, 1.0)), shares[1:]
        if self._folds < FEWEST or (total[1:] <= 0).any():
            return Estimate(value, np.nan, np.nan)
        error = np.sqrt((self._folds - 1) / self._folds * ((again - again.mean()) ** 2).sum())
        margin = float(special.stdtrit(self._folds - 1, 0.975) * error)
        low, high = (float(np.clip(shares[0] + side * margin, 0.0, 1.0)) for side in (-1, 1))
        return Estimate(value, low, high)


def _folds(grouped: Grouped, rng: np.random.Generator) -> tuple[npt.NDArray[np.int_], int]:
    """A fold for every person, alike in every group; fewer folds where a group has fewer people."""
    people, first, who = np.unique(grouped.people, return_index=True, return_inverse=True)
    order = np.lexsort((rng.random(len(people)), grouped.codes[first]))
    rank = np.empty(len(people), dtype=int)
    rank[order] = np.arange(len(people))
    inside = grouped.codes >= 0
    for count in range(FOLDS, 1, -1):
        fold = rank[who] % count
        if len(np.unique((grouped.codes * count + fold)[inside])) == len(grouped.groups) * count:
            return fold, count
    return rank[who] % 2, 2


def _products(deviations: Array) -> Array:
    """Sums of squared true deviations of every trait, with all folds and then without each: `[1 + n_folds, n_traits]`.

    `deviations[n_folds, n_groups, n_traits, n_wordings]`. (Σ d)² − Σ d² holds only products of different folds.
    """
    count = len(deviations)
    sums, squares = deviations.sum(axis=0), (deviations**2).sum(axis=0)
    whole = ((sums**2 - squares).sum(axis=(0, 2)) / (count * (count - 1)))[None]
    if count < 3:
        return np.concatenate([whole, np.full((count, whole.shape[1]), np.nan)])
    others = (sums - deviations) ** 2 - (squares - deviations**2)
    return np.concatenate([whole, others.sum(axis=(1, 3)) / ((count - 1) * (count - 2))])


class WordingRanges(NamedTuple):
    """How far mean P(Yes) lies apart between two wordings at most, of every trait; bounds hold for all traits."""

    value: Array
    low: Array
    high: Array


def wording_ranges(
    scores: npt.NDArray[np.floating], people: npt.NDArray[np.int_], rng: np.random.Generator
) -> WordingRanges:
    """From `scores[n_images, n_traits, n_wordings]`; each image was asked in every wording.

    Bounds come from the widest difference of any trait and pair of wordings when people's deviations change sign at
    random (a wild bootstrap of people).
    """
    names, who = np.unique(people, return_inverse=True)
    n, traits, wordings = scores.shape
    first, second = np.triu_indices(wordings, 1)
    means = np.asarray(scores.mean(axis=0, dtype=np.float64))
    gaps = np.abs(means[:, first] - means[:, second])
    if len(names) < FEWEST:
        return WordingRanges(gaps.max(axis=1), *np.full((2, traits), np.nan))
    sums = np.zeros((len(names), traits, wordings))
    np.add.at(sums, who, np.asarray(scores, dtype=np.float64) - means)
    squares = ((sums[:, :, first] - sums[:, :, second]) ** 2).sum(axis=0)
    factor = len(names) / (len(names) - 1) / n**2
    error = np.sqrt(factor * squares)
    flips = 2.0 * rng.integers(0, 2, (DRAWS, len(names))) - 1
    moved = (flips @ sums.reshape(len(names), -1)).reshape(DRAWS, traits, wordings)
    apart = moved[:, :, first] - moved[:, :, second]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(factor * np.maximum(squares - apart**2 / len(names), 0.0))
        deviates = np.nan_to_num(np.abs(apart) / n / spread, nan=0.0, posinf=0.0)
    margin = critical_value(np.sort(deviates.max(axis=(1, 2)))) * error
    return WordingRanges(gaps.max(axis=1), np.maximum(gaps - margin, 0.0).max(axis=1), (gaps + margin).max(axis=1))
