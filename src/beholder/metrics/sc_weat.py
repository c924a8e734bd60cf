"""SC-WEAT: does a word lie nearer to one group of images than to another, in standard deviations?

s = mean cos(word, A) − mean cos(word, B); effect size = s / standard deviation over A ∪ B. 0 means neither is nearer;
positive means A is. The p-value is that of s when the images are dealt into two parts of the same sizes at random:
over all partitions where they are few, else over a stated number of sampled ones. Where a person has several images,
people are dealt and not images. Pure functions.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.metrics.person_shuffles import PersonShuffles, has_repeats

Array = npt.NDArray[np.float64]
FEW_PARTITIONS = 20_000
"""Up to so many partitions all of them are counted."""
BLOCK_CELLS = 1 << 22
SHADE, TINY = 1 - 1e-12, 1e-15
"""A shade below the observed value: equal partitions must not miss each other by rounding."""


class Association(NamedTuple):
    """Of every column (a word or a dimension): the difference of means and the effect size."""

    difference: Array
    effect: Array


class Permutation(NamedTuple):
    """Two-sided p-values, and how they were come by."""

    p_value: Array
    partitions: int
    exact: bool
    at_most: npt.NDArray[np.bool_]
    """Where no sampled partition came as far: the p-value is at most what is given."""


def sc_weat(a: npt.NDArray[Any], b: npt.NDArray[Any], *, ddof: int = 1) -> Association:
    """Difference of means and effect size of every column; rows are the images of each group.

    `ddof` 1 (the default) takes the sample's standard deviation, 0 the population's: both are in use.

    >>> sc_weat(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]), ddof=0).effect.round(3)
    array([-1.789])
    """
    a, b = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in (a, b))
    difference = a.mean(axis=0) - b.mean(axis=0)
    spread = np.concatenate([a, b]).std(axis=0, ddof=ddof)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Association(difference, np.asarray(np.where(spread > 0, difference / spread, np.nan)))


def permutation_test(
    a: npt.NDArray[Any],
    b: npt.NDArray[Any],
    rng: np.random.Generator,
    *,
    samples: int = 2000,
    people: npt.NDArray[Any] | None = None,
    strata: npt.NDArray[Any] | None = None,
) -> Permutation:
    """How often a partition of all images into parts of these sizes sets them at least as far apart.

    `people` (of A's images, then of B's) are dealt with all their images. With `strata` they change sides only within
    their stratum, and distances are from what the strata explain. Sampled p-values count the partition at hand as one
    of them, so that none is 0.
    """
    a, b = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in (a, b))
    values = np.concatenate([a, b])
    values = values - values.mean(axis=0)
    if strata is not None or (people is not None and has_repeats(people)):
        people = np.arange(len(values)) if people is None else people
        return _dealt_people(values, len(a), people, strata, rng, samples)
    observed = np.abs(values[: len(a)].sum(axis=0))  # the sum of one part says how far the two lie apart
    exact = comb(len(values), len(a)) <= FEW_PARTITIONS
    parts = _all_parts(len(values), len(a)) if exact else _sampled_parts(len(values), len(a), rng, samples)
    hits, partitions = np.zeros(values.shape[1]), 0
    for part in parts:
        hits += (np.abs(part @ values) >= observed * SHADE - TINY).sum(axis=0)
        partitions += len(part)
    return _counted(hits, partitions, exact=exact)


def _dealt_people(
    values: Array, size: int, people: npt.NDArray[Any], strata: Any, rng: np.random.Generator, samples: int
) -> Permutation:
    side = (np.arange(len(values)) >= size).astype(int)
    drawn = [_apart(part == 0, values) for part in PersonShuffles(side, people, strata).parts(samples, rng)]
    apart, observed = np.concatenate(drawn), _apart(side[None] == 0, values)[0]
    middle = 0.0 if strata is None else apart.mean(axis=0)
    hits = (np.abs(apart - middle) >= np.abs(observed - middle) * SHADE - TINY).sum(axis=0)
    return _counted(hits, samples, exact=False)


def _apart(first: npt.NDArray[np.bool_], values: Array) -> Array:
    """Mean of the first part less mean of the second, for every partition and column."""
    belongs = first.astype(np.float64)
    sums, n = belongs @ values, belongs.sum(axis=1, keepdims=True)
    return np.asarray(sums / n - (values.sum(axis=0) - sums) / (len(values) - n))


def _counted(hits: Array, partitions: int, *, exact: bool) -> Permutation:
    p_value = hits / partitions if exact else (hits + 1) / (partitions + 1)
    return Permutation(p_value, partitions, exact, np.asarray((hits == 0) & (not exact)))


def explained(values: npt.NDArray[Any], first: npt.NDArray[np.bool_], strata: npt.NDArray[Any]) -> Array:
    """The difference of means that strata alone explain: each image at its stratum's mean.

    >>> explained(np.array([[1.0], [1.0], [3.0], [3.0]]), np.array([True, True, True, False]), np.array([0, 0, 1, 1]))
    array([-1.33333333])
    """
    _, codes = np.unique(strata, return_inverse=True)
    belongs = (codes[:, None] == np.arange(codes.max() + 1)).astype(np.float64)
    level = belongs @ ((belongs.T @ np.asarray(values, dtype=np.float64)) / belongs.sum(axis=0)[:, None])
    return np.asarray(level[first].mean(axis=0) - level[~first].mean(axis=0))


def _all_parts(n: int, size: int) -> list[Array]:
    chosen = np.array(list(combinations(range(n), size)))
    belongs = np.zeros((len(chosen), n))
    belongs[np.arange(len(chosen))[:, None], chosen] = 1.0
    return [belongs]


def _sampled_parts(n: int, size: int, rng: np.random.Generator, samples: int) -> Any:
    """Indicators of sampled parts, block after block."""
    width = max(1, BLOCK_CELLS // n)
    template = (np.arange(n) < size).astype(np.float64)
    for start in range(0, samples, width):
        count = min(width, samples - start)
        yield rng.permuted(np.tile(template, (count, 1)), axis=1)
