"""Gaps in average precision between groups of pictures, for all concepts at once: intervals and tests.

Draws resample pictures. The test shuffles the groups' labels among the pictures that show a concept and among
those that do not, apart: what is held against the labels is then the ranking alone, not how often a group shows it.
In one shuffle a picture has one random key for all concepts, so its labels agree as far as the counts allow: a mean
over concepts varies between shuffles as much as it does between data sets.
Every concept's ranking is walked once for all draws; concepts are walked by several threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from beholder.metrics.average_precision import Array, Counts, Mask, Ranking
from beholder.metrics.bootstrap import CELLS, Resampler

Codes = npt.NDArray[np.integer[Any]]
Keys = npt.NDArray[np.uint16]
KEYS = 1 << 16
"""Values of a random key that decides a picture's shuffled group."""
POWER, LEVEL = 0.8, 0.05


class Precision(NamedTuple):
    """Average precision as it stands, and at the concept's common prevalence."""

    raw: Array
    matched: Array


def prevalences(scores: Array, present: Mask) -> Array:
    """Of every concept, the share of pictures that show it, among those with a score."""
    known = ~np.isnan(scores)
    with np.errstate(invalid="ignore"):
        return np.asarray((present & known).sum(axis=0) / known.sum(axis=0))


def measured(scores: Array, present: Mask, sets: Sequence[Mask], *, importance: Array | None = None) -> Precision:
    """Average precision of every set of pictures and every concept, `[n_sets, n_concepts]`.

    `importance` is what each picture counts, `[n_sets, n_images, n_concepts]`; 1 unless given.
    """
    common, rankings = prevalences(scores, present), rankings_of(scores, present, sets, importance)
    precisions = np.full((2, len(sets), scores.shape[1]), np.nan)
    for number, column in enumerate(rankings):
        for concept, ranking in enumerate(column):
            if ranking.steps:
                counts = ranking.counts(np.ones((len(scores), 1)))
                precisions[:, number, concept] = [a[0] for a in _both(counts, float(common[concept]))]
    return Precision(*precisions)


def resampled(
    scores: Array, present: Mask, sets: Sequence[Mask], resampler: Resampler, *, importance: Array | None = None
) -> Precision:
    """The same in every draw of the pictures, `[n_sets, n_concepts, n_draws]`, float32."""
    common, width = prevalences(scores, present), scores.shape[1]
    rankings = rankings_of(scores, present, sets, importance)
    precisions = np.full((2, len(sets), width, resampler.draws), np.nan, dtype=np.float32)
    start = 0
    for part in resampler.weights():
        weights = np.ascontiguousarray(part.T, dtype=np.float32)
        here = slice(start, start := start + len(part))

        def walk(concept: int, weights: Array = weights, here: slice = here) -> None:
            for number, column in enumerate(rankings):
                if column[concept].steps:
                    counts = column[concept].counts(weights)
                    precisions[:, number, concept, here] = _both(counts, float(common[concept]))

        each_concept(walk, width)
    return Precision(*precisions)


def shuffled(
    scores: Array, present: Mask, groups: Codes, rng: np.random.Generator, draws: int, *, people: Codes | None = None
) -> tuple[Precision, Precision]:
    """Average precision of every group, and of all pictures besides it, when labels are shuffled.

    `groups` numbers each picture's group from 0; of two groups only the first is there, for the second is all besides
    it. Each `[n_groups, n_concepts, n_draws]`, float32. Of the pictures that show the concept every group keeps as many
    as it has; of the others it keeps its share, on average. `people` numbers who is in each picture: pictures of one
    person are shuffled together.
    """
    common, (n, width), many = prevalences(scores, present), scores.shape, int(groups.max()) + 1
    many = 1 if many == 2 else many
    everyone = np.ones(n, dtype=bool)
    (rankings,) = rankings_of(scores, present, [everyone])
    precisions = np.full((2, 2, many, width, draws), np.nan, dtype=np.float32)
    for here, keys in shuffle_keys(n, rng, draws, people):

        def walk(concept: int, keys: Keys = keys, here: slice = here) -> None:
            ranking, shows = rankings[concept], present[:, concept]
            if not ranking.steps:
                return
            whole = ranking.counts(np.ones((n, 1), dtype=np.float32))
            labels = shuffled_labels(groups, shows, keys)
            for group in range(many):
                mine = ranking.counts((labels == group).astype(np.float32))
                precisions[0, :, group, concept, here] = _both(mine, float(common[concept]))
                precisions[1, :, group, concept, here] = _both(whole.besides(mine), float(common[concept]))

        each_concept(walk, width)
    return Precision(*precisions[0]), Precision(*precisions[1])


def shuffle_p_value(value: float, shuffles: Array) -> float:
    """How often shuffled labels give a value as far from the mean of all of them as this one; never 0.

    The mean is over the shuffles and this value, so that all are treated alike: exact for any number of shuffles.

    >>> shuffle_p_value(3.0, np.array([-1.0, 0.0, 1.0]))
    0.25
    """
    defined = shuffles[np.isfinite(shuffles)]
    if not defined.size:
        return float("nan")
    centre = float((defined.sum(dtype=np.float64) + value) / (defined.size + 1))
    farther = np.abs(defined - centre) >= abs(value - centre) * (1 - 1e-6)  # float32 draws: ties count
    return float((1 + farther.sum()) / (1 + defined.size))


def exceed_p_value(value: float, shuffles: Array) -> float:
    """How often shuffled labels give at least this value; never 0. For widths, which cannot be below 0.

    >>> exceed_p_value(3.0, np.array([1.0, 2.0, 4.0]))
    0.5
    """
    defined = shuffles[np.isfinite(shuffles)]
    return float((1 + (defined >= value * (1 - 1e-6)).sum()) / (1 + defined.size)) if defined.size else float("nan")


def is_floor(p_value: float, shuffles: Array) -> bool:
    """Whether a p-value is the smallest that these shuffles can give.

    >>> is_floor(0.25, np.zeros(3)), is_floor(0.5, np.zeros(3))
    (True, False)
    """
    return bool(p_value * (1 + np.isfinite(shuffles).sum()) < 1.5)


def smallest_detectable(shuffles: Array) -> float:
    """The gap that would be found at p ≤ 0.05 in four of five such data sets, from the spread of shuffled gaps."""
    return float((norm.ppf(1 - LEVEL / 2) + norm.ppf(POWER)) * np.nanstd(shuffles))


def _both(counts: Counts, prevalence: float) -> tuple[Array, Array]:
    return counts.average_precision(), counts.average_precision(prevalence)


def rankings_of(
    scores: Array, present: Mask, sets: Sequence[Mask], importance: Array | None = None
) -> list[list[Ranking]]:
    """A ranking for every set and concept, of the pictures with a score."""
    n, width = scores.shape
    made = []
    for number, members in enumerate(sets):
        places = [np.flatnonzero(members & ~np.isnan(scores[:, j])) for j in range(width)]
        counted = [None if importance is None else importance[number, rows, j] for j, rows in enumerate(places)]
        made.append(
            [
                Ranking(scores[rows, j], present[rows, j], rows=rows, width=n, importance=counted[j])
                for j, rows in enumerate(places)
            ]
        )
    return made


def shuffle_keys(
    images: int, rng: np.random.Generator, draws: int, people: Codes | None = None
) -> Iterator[tuple[slice, Keys]]:
    """Random keys of the pictures, `[n_images, part of the draws]`, part after part; one for all pictures of a person.

    A slice says which draws these are.
    """
    who = np.arange(images) if people is None else people
    for here in _parts(draws, images):
        yield (
            here,
            rng.integers(0, KEYS, size=(int(who.max(initial=0)) + 1, here.stop - here.start), dtype=np.uint16)[who],
        )


def shuffled_labels(groups: Codes, shows: Mask, keys: Keys) -> npt.NDArray[np.uint8]:
    """A group for each picture in each draw, from the lowest key up: the first group's, then the second's.

    Among the pictures that show the concept, every group gets exactly as many as it has; among the others its share.
    """
    shares = np.bincount(groups[~shows], minlength=int(groups.max()) + 1) / max(1, int((~shows).sum()))
    labels = np.zeros(keys.shape, dtype=np.uint8)
    for edge in np.cumsum(shares)[:-1]:
        labels += keys >= edge * KEYS
    order = np.argsort(keys[shows].T, axis=1, kind="stable")
    own = np.empty(order.shape, dtype=np.uint8)
    np.put_along_axis(own, order, np.sort(groups[shows]).astype(np.uint8)[None, :], axis=1)
    labels[shows] = own.T
    return labels


def _parts(draws: int, images: int) -> Iterator[slice]:
    size = max(1, CELLS // max(1, images))
    for start in range(0, draws, size):
        yield slice(start, min(start + size, draws))


def each_concept(work: Callable[[int], None], count: int) -> None:
    """Do it for every number below `count`; numpy lets threads run side by side."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(work, range(count)))
