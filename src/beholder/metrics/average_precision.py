"""Average precision: how well a score puts the pictures that show a concept before those that do not.

From the highest score down, the precision at every picture that shows the concept, averaged over them: 1 when all of
them come first, about their share (the prevalence) when the order is random. Pictures of one score are reached
together. Pure functions; a draw of a bootstrap is a column of weights, so a ranking is sorted once for all draws.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from beholder.core.types import Codes, Floating, Integers, Mask
from beholder.metrics.intervals import CELLS, Reach, Resampler, log_odds_interval

NOTHING = 1e-30  # stands for an empty denominator; its numerator is 0 too


class Counts(NamedTuple):
    """Weight reached at every step down a ranking, one column a draw: `[n_steps, n_draws]`."""

    hits: Floating  # pictures with the concept reached in this step
    true: Floating  # pictures with the concept reached so far
    false: Floating  # pictures without it reached so far; one row more, for what stands below the last step

    def average_precision(self, prevalence: float | None = None) -> Floating:
        """In every draw, 0 to 1; NaN where no picture shows the concept.

        With `prevalence`, as it would be if that share of the pictures showed the concept: pictures without it count
        for more or less, all by the same factor. NaN then also where every picture shows it.
        """
        total, wrong = self.true[-1], self.false[-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            if prevalence is None:
                reached = self.true + self.false[:-1]
            else:
                factor = total * ((1 - prevalence) / prevalence) / wrong
                reached = self.false[:-1] * factor
                reached += self.true
            np.maximum(reached, NOTHING, out=reached)
            np.divide(self.true, reached, out=reached)
            reached *= self.hits
            return np.asarray(reached.sum(axis=0) / total)

    def besides(self, part: "Counts") -> "Counts":
        """What is left of these counts without a part of them."""
        return Counts(self.hits - part.hits, self.true - part.true, self.false - part.false)


class Ranking:
    """Pictures from the highest score down, cut after every score at which one of them shows the concept.

    `rows` says where these pictures stand among the `width` pictures that weights are given for; without it they are
    all of them, in order. `importance` is what a picture counts in every draw, 1 unless given.
    """

    def __init__(
        self,
        scores: Floating,
        present: Mask,
        *,
        rows: Integers | None = None,
        width: int | None = None,
        importance: Floating | None = None,
    ) -> None:
        rows = np.arange(len(scores)) if rows is None else rows
        order = np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")
        ranked, shows = scores[order], present[order]
        level = np.cumsum(np.append(False, ranked[1:] != ranked[:-1])[: len(scores)])  # of no picture, none
        stops = np.bincount(level, weights=shows) > 0
        step: Integers = (np.cumsum(stops) - stops)[level]
        self.steps, self.size = int(stops.sum()), len(scores)
        columns, width = rows[order], len(scores) if width is None else width
        counted = (np.ones(len(scores)) if importance is None else importance)[order].astype(np.float32)
        self._hits = _reached(columns[shows], counted[shows], step[shows], (self.steps, width))
        self._misses = _reached(columns[~shows], counted[~shows], step[~shows], (self.steps + 1, width))
        self._order, self._step, self._shows = order, step, shows

    def left_out(self, prevalence: float | None = None) -> Floating:
        """Average precision without each picture in turn, in the order they were given; every picture counts once."""
        # NaN where what is left has none. A picture's place says it all, so all of them cost one pass over the steps.
        hits = np.bincount(self._step[self._shows], minlength=self.steps).astype(np.float64)
        misses = np.bincount(self._step[~self._shows], minlength=self.steps + 1)
        true, false = np.cumsum(hits), np.cumsum(misses[:-1]).astype(np.float64)
        total, wrong = hits.sum(), float(misses.sum())

        def terms(hits: Floating, true: Floating, false: Floating, factor: float) -> Floating:
            return np.asarray(hits * true / np.maximum(true + factor * false, NOTHING))

        with np.errstate(divide="ignore", invalid="ignore"):
            factor = 1.0 if prevalence is None else (total - 1) * (1 - prevalence) / (prevalence * wrong)
            above, below = terms(hits, true, false, factor), terms(hits, true - 1, false, factor)
            own = terms(hits - 1, true - 1, false, factor)
            hit = (_before(above) + own + _after(below)) / (total - 1)
            factor = 1.0 if prevalence is None else total * (1 - prevalence) / (prevalence * (wrong - 1))
            above, below = terms(hits, true, false, factor), terms(hits, true, false - 1, factor)
            miss = np.append(_before(above) + _after(below) + below, above.sum()) / total
        found = np.empty(self.size)
        found[self._order] = np.where(self._shows, np.append(hit, np.nan)[self._step], miss[self._step])
        return found

    def counts(self, weights: Floating) -> Counts:
        """What is reached step by step when picture i counts `weights[i, d]` times in draw d."""
        hits = self._hits @ weights
        return Counts(hits, _running_sums(hits), _running_sums(self._misses @ weights))


def _before(terms: Floating) -> Floating:
    return np.asarray(np.cumsum(terms) - terms)


def _after(terms: Floating) -> Floating:
    return np.asarray(np.cumsum(terms[::-1])[::-1] - terms)


def _reached(columns: Integers, counted: Floating, steps: Integers, shape: tuple[int, int]) -> Any:
    """Which pictures are reached in which step, as a sparse matrix; steps come sorted."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(steps, minlength=shape[0]))]).astype(np.int32)
    return sparse.csr_matrix((counted, columns.astype(np.int32), starts), shape=shape)


def _running_sums(rows: Floating) -> Floating:
    """`np.cumsum(rows, axis=0)`, within blocks side by side, then over the blocks: four times as fast."""
    steps, draws = rows.shape
    side = max(1, math.isqrt(steps))
    blocks = np.zeros((-(-steps // side), side, draws), dtype=rows.dtype)
    whole = blocks.reshape(-1, draws)
    whole[:steps] = rows
    for place in range(1, side):
        blocks[:, place] += blocks[:, place - 1]
    blocks[1:] += np.cumsum(blocks[:-1, -1], axis=0)[:, None]
    return whole[:steps]


Keys = npt.NDArray[np.uint16]
KEYS = 1 << 16  # values of a random key that decides a person's shuffled group
JUDGED, LARGE = 10, 50
"""People with one picture who do not show a concept: with fewer nothing is judged; from LARGE on, groups keep their
sizes on average only, which is much faster and changes nothing."""
MIXED, BINS = 0.8, 5
"""Share of people who must have someone of another group in their block, or else blocks are as many bins."""


class Precision(NamedTuple):
    """Average precision as it stands, and at the concept's common prevalence."""

    raw: Floating
    matched: Floating


def prevalences(scores: Floating, present: Mask) -> Floating:
    """Of every concept, the share of pictures that show it, among those with a score."""
    known = ~np.isnan(scores)
    with np.errstate(invalid="ignore"):
        return np.asarray((present & known).sum(axis=0) / known.sum(axis=0))


def measured(scores: Floating, present: Mask, sets: Sequence[Mask], *, importance: Floating | None = None) -> Precision:
    """Average precision of every set of pictures and every concept, `[n_sets, n_concepts]`."""
    # `importance` is what each picture counts, `[n_sets, n_images, n_concepts]`; 1 unless given.
    precisions = np.full((2, len(sets), scores.shape[1], 1), np.nan)
    _measure(scores, present, rankings_of(scores, present, sets, importance), np.ones((len(scores), 1)), precisions)
    return Precision(*precisions[..., 0])


def resampled(scores: Floating, present: Mask, sets: Sequence[Mask], resampler: Resampler) -> Precision:
    """The same in every draw of the people, `[n_sets, n_concepts, n_draws]`, float32."""
    rankings, start = rankings_of(scores, present, sets), 0
    precisions = np.full((2, len(sets), scores.shape[1], resampler.draws), np.nan, dtype=np.float32)
    for part in resampler.weights():
        here = slice(start, start := start + len(part))
        weights = np.ascontiguousarray(part.T, dtype=np.float32)
        _measure(scores, present, rankings, weights, precisions[..., here])
    return Precision(*precisions)


def _measure(scores: Floating, present: Mask, rankings: list[list[Ranking]], weights: Floating, into: Floating) -> None:
    """Both precisions of every set and concept, written into `[2, n_sets, n_concepts, n_draws]`."""
    common = prevalences(scores, present)

    def walk(concept: int) -> None:
        for number, column in enumerate(rankings):
            if column[concept].steps:
                counts, share = column[concept].counts(weights), float(common[concept])
                into[:, number, concept] = counts.average_precision(), counts.average_precision(share)

    each_concept(walk, scores.shape[1])


def shuffled(
    scores: Floating,
    present: Mask,
    groups: Codes,
    rng: np.random.Generator,
    draws: int,
    *,
    people: Codes | None = None,
    cells: Codes | None = None,
) -> Floating:
    """Matched average precision of every group less that of all others, when people change groups.

    `groups` numbers each picture's group from 0; of two groups only the first is there: the second is all others.
    `[n_groups, n_concepts, n_draws]`, float32; NaN where a shuffle leaves a side without pictures. `people` and `cells`
    as in `LabelShuffles`.
    """
    common, (n, width), many = prevalences(scores, present), scores.shape, int(groups.max()) + 1
    many = 1 if many == 2 else many
    (rankings,) = rankings_of(scores, present, [np.ones(n, dtype=bool)])
    gaps = np.full((many, width, draws), np.nan, dtype=np.float32)
    shuffles, known = LabelShuffles(groups, people, cells), ~np.isnan(scores)
    for here, keys in shuffles.keys(rng, draws):

        def walk(concept: int, keys: Keys = keys, here: slice = here) -> None:
            ranking, share = rankings[concept], float(common[concept])
            if not ranking.steps:
                return
            whole = ranking.counts(np.ones((n, 1), dtype=np.float32))
            labels = shuffles.labels(present[:, concept], known[:, concept], keys)
            for group in range(many):
                mine = ranking.counts((labels == group).astype(np.float32))
                rest = whole.besides(mine).average_precision(share).astype(np.float32)
                gaps[group, concept, here] = mine.average_precision(share).astype(np.float32) - rest

        each_concept(walk, width)
    return gaps


class LabelShuffles:
    """Groups of pictures as they could have been: people change groups, each with all their pictures.

    `people` numbers who is in each picture, else each is someone else; `cells` numbers what people are compared within.
    Someone who is shown in several groups only changes places with themselves.
    """

    def __init__(self, groups: Codes, people: Codes | None = None, cells: Codes | None = None) -> None:
        who = np.arange(len(groups)) if people is None else people
        _, first, self._unit = np.unique(who * (int(groups.max()) + 1) + groups, return_index=True, return_inverse=True)
        self.groups, own = groups[first], who[first]
        cell = np.zeros(len(first), dtype=int) if cells is None else cells[first]
        self._blocks = np.where(np.bincount(own)[own] > 1, cell.max() + 1 + own, cell)

    def keys(self, rng: np.random.Generator, draws: int) -> Iterator[tuple[slice, Keys]]:
        """Random keys of the people, `[n_people, part of the draws]`, part after part; a slice says which draws."""
        many = len(self.groups)
        # In the order of their numbers as text, as in earlier versions: matched gaps rest on these very draws.
        place = np.argsort(np.argsort(np.arange(many).astype(str)))
        size = max(1, CELLS // max(1, len(self._unit)))
        for start in range(0, draws, size):
            here = slice(start, min(start + size, draws))
            yield here, rng.integers(0, KEYS, size=(many, here.stop - start), dtype=np.uint16)[place]

    def labels(self, shows: Mask, known: Mask, keys: Keys) -> npt.NDArray[np.uint8]:
        """A group for each picture in each draw, `[n_pictures, n_draws]`; `known` are the pictures with a score."""
        # People of a block get its groups from the lowest key up.
        often, blocks = self.blocks(shows, known)
        never = often == 0
        order = np.argsort(blocks, kind="stable")
        members = sorted(np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1), key=len, reverse=True)
        labels = _by_share(keys, self.groups[members[0]])
        several = len(self.groups) < len(self._unit) or sum(never[mine[0]] for mine in members) > 1
        exact = several or JUDGED <= never.sum() < LARGE
        for number, mine in enumerate(members):
            if never[mine[0]] and (len(mine) >= LARGE or not exact):
                if number:
                    labels[mine] = _by_share(keys[mine], self.groups[mine])
            else:
                order = np.argsort(keys[mine].T, axis=1, kind="stable")
                own = np.empty(order.shape, dtype=np.uint8)
                np.put_along_axis(own, order, np.sort(self.groups[mine]).astype(np.uint8)[None, :], axis=1)
                labels[mine] = own.T
        return labels if len(labels) == len(self._unit) else labels[self._unit]

    def blocks(self, shows: Mask, known: Mask) -> tuple[Codes, Codes]:
        """How often each person shows the concept, and a number that is the same for people who may change groups."""
        many = len(self.groups)
        often, other = (np.bincount(self._unit[rows], minlength=many) for rows in (shows & known, ~shows & known))
        alike = often * (int(other.max(initial=0)) + 1) + other
        blocks = self._within(alike)
        if many < len(self._unit) and self._mixed(blocks) < MIXED:
            shares = np.arange(1, BINS) / BINS
            edges = np.unique(np.quantile(often[often > 0], shares)) if often.any() else np.empty(0)
            blocks = self._within(np.where(often > 0, 1 + np.searchsorted(edges, often), 0))
        return often, blocks

    def _within(self, alike: Codes) -> Codes:
        return np.asarray(alike * (int(self._blocks.max(initial=0)) + 1) + self._blocks)

    def _mixed(self, blocks: Codes) -> float:
        """The share of people who have someone of another group in their block."""
        pairs = np.unique(np.stack([blocks, self.groups]), axis=1)[0]
        several = pairs[1:][pairs[1:] == pairs[:-1]]
        return float(np.isin(blocks, several).mean())


def _by_share(keys: Keys, groups: Codes) -> npt.NDArray[np.uint8]:
    """A group for everybody by their key alone: each of these groups gets its share, on average."""
    labels = np.zeros(keys.shape, dtype=np.uint8)
    for edge in np.cumsum(np.bincount(groups) / len(groups))[:-1]:
        labels += keys >= edge * KEYS
    return labels


def rankings_of(
    scores: Floating, present: Mask, sets: Sequence[Mask], importance: Floating | None = None
) -> list[list[Ranking]]:
    """A ranking for every set and concept, of the pictures with a score."""

    def ranking(number: int, j: int) -> Ranking:
        rows = np.flatnonzero(sets[number] & ~np.isnan(scores[:, j]))
        counted = None if importance is None else importance[number, rows, j]
        return Ranking(scores[rows, j], present[rows, j], rows=rows, width=len(scores), importance=counted)

    return [[ranking(number, j) for j in range(scores.shape[1])] for number in range(len(sets))]


def each_concept(work: Callable[[int], None], count: int) -> None:
    """Do it for every number below `count`; numpy lets threads run side by side."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(work, range(count)))


# How sure is an average precision? One picture after the other is left out, and what that does is added up

STILL = 1e-9  # an error below this is rounding: nothing that was left out moved the number


class LeaveOneOut(NamedTuple):
    """Of every set and concept, `[n_sets, n_concepts]` each."""

    value: Floating
    error: Floating  # standard error over pictures, or over people where pictures of one belong together
    freedom: Floating  # how many pictures that error rests on, as degrees of freedom

    def reach(self, member: int, concept: int, level: float = 0.95) -> Reach:
        """How far the interval of one value reaches, on the log-odds; NaN where all or nothing is right."""
        value, error, freedom = (float(part[member, concept]) for part in (self.value, self.error, self.freedom))
        low, high = log_odds_interval(value, error if error > STILL else np.nan, freedom, level)
        return Reach(value - low, high - value)


def left_out(scores: Floating, present: Mask, sets: Sequence[Mask], people: Codes) -> tuple[LeaveOneOut, LeaveOneOut]:
    """Of average precision as it stands, and at matched prevalence; `people` numbers who is in each picture."""
    common, rankings = prevalences(scores, present), rankings_of(scores, present, sets)
    found = np.full((2, 3, len(sets), scores.shape[1]), np.nan)

    def walk(concept: int) -> None:
        for member, column in enumerate(rankings):
            rows = np.flatnonzero(sets[member] & ~np.isnan(scores[:, concept]))
            shows = present[rows, concept]
            if shows.any():
                for kind, prevalence in enumerate((None, float(common[concept]))):
                    counts = column[concept].counts(np.ones((len(scores), 1)))
                    value = float(counts.average_precision(prevalence)[0])
                    each = column[concept].left_out(prevalence)
                    found[kind, :, member, concept] = _from_each(value, each, shows, people[rows])

    each_concept(walk, scores.shape[1])
    return LeaveOneOut(*found[0]), LeaveOneOut(*found[1])


def _from_each(value: float, each: Floating, shows: Mask, people: Codes) -> tuple[float, float, float]:
    """Value, error and degrees of freedom (Satterthwaite's, over pictures with the concept and without)."""
    n, off = len(each), each - each.mean()
    alone = np.bincount(np.unique(people, return_inverse=True)[1], weights=off)
    squares = np.array([(off[part] ** 2).sum() for part in (shows, ~shows)])
    sizes = np.array([shows.sum(), n - shows.sum()])
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt((alone**2).sum() * (len(alone) - 1) / len(alone))
        parts = np.where(sizes > 1, squares**2 / (sizes - 1), 0.0)
        freedom = squares.sum() ** 2 / parts.sum()
    return value, float(error), float(freedom)
