"""Average precision: how well a score puts the pictures that show a concept before those that do not.

From the highest score down, the precision at every picture that shows the concept, averaged over them: 1 when all of
them come first, about their share (the prevalence) when the order is random. Pictures of one score are reached
together. Pure functions; a draw of a bootstrap is a column of weights, so a ranking is sorted once for all draws.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

Array = npt.NDArray[np.floating[Any]]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.integer[Any]]
NOTHING = 1e-30
"""Stands for an empty denominator; its numerator is 0 too."""


class Counts(NamedTuple):
    """Weight reached at every step down a ranking, one column a draw: `[n_steps, n_draws]`."""

    hits: Array
    """Pictures with the concept reached in this step."""
    true: Array
    """Pictures with the concept reached so far."""
    false: Array
    """Pictures without it reached so far; one row more, for what stands below the last step."""

    def average_precision(self, prevalence: float | None = None) -> Array:
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

    def besides(self, part: Counts) -> Counts:
        """What is left of these counts without a part of them."""
        return Counts(self.hits - part.hits, self.true - part.true, self.false - part.false)


class Ranking:
    """Pictures from the highest score down, cut after every score at which one of them shows the concept.

    `rows` says where these pictures stand among the `width` pictures that weights are given for; without it they are
    all of them, in order. `importance` is what a picture counts in every draw, 1 unless given.
    """

    def __init__(
        self,
        scores: Array,
        present: Mask,
        *,
        rows: Rows | None = None,
        width: int | None = None,
        importance: Array | None = None,
    ) -> None:
        rows = np.arange(len(scores)) if rows is None else rows
        order = np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")
        ranked, shows = scores[order], present[order]
        level = np.cumsum(np.append(False, ranked[1:] != ranked[:-1])[: len(scores)])  # of no picture, none
        stops = np.bincount(level, weights=shows) > 0
        step: Rows = (np.cumsum(stops) - stops)[level]
        self.steps, self.size = int(stops.sum()), len(scores)
        columns, width = rows[order], len(scores) if width is None else width
        counted = (np.ones(len(scores)) if importance is None else importance)[order].astype(np.float32)
        self._hits = _reached(columns[shows], counted[shows], step[shows], (self.steps, width))
        self._misses = _reached(columns[~shows], counted[~shows], step[~shows], (self.steps + 1, width))
        self._order, self._step, self._shows = order, step, shows

    def left_out(self, prevalence: float | None = None) -> Array:
        """Average precision without each picture in turn, in the order they were given; every picture counts once.

        NaN where what is left has none. A picture's place says it all, so all of them cost one pass over the steps.
        """
        hits = np.bincount(self._step[self._shows], minlength=self.steps).astype(np.float64)
        misses = np.bincount(self._step[~self._shows], minlength=self.steps + 1)
        true, false = np.cumsum(hits), np.cumsum(misses[:-1]).astype(np.float64)
        total, wrong = hits.sum(), float(misses.sum())

        def terms(hits: Array, true: Array, false: Array, factor: float) -> Array:
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

    def counts(self, weights: Array) -> Counts:
        """What is reached step by step when picture i counts `weights[i, d]` times in draw d."""
        hits = self._hits @ weights
        return Counts(hits, _running_sums(hits), _running_sums(self._misses @ weights))


def _before(terms: Array) -> Array:
    """Of every step, the sum over the steps before it."""
    return np.asarray(np.cumsum(terms) - terms)


def _after(terms: Array) -> Array:
    """Of every step, the sum over the steps after it."""
    return np.asarray(np.cumsum(terms[::-1])[::-1] - terms)


def _reached(columns: Rows, counted: Array, steps: Rows, shape: tuple[int, int]) -> Any:
    """Which pictures are reached in which step, as a sparse matrix; steps come sorted."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(steps, minlength=shape[0]))]).astype(np.int32)
    return sparse.csr_matrix((counted, columns.astype(np.int32), starts), shape=shape)


def _running_sums(rows: Array) -> Array:
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


def average_precision(
    scores: npt.NDArray[Any],
    present: npt.NDArray[Any],
    weights: npt.NDArray[Any] | None = None,
    *,
    prevalence: float | None = None,
) -> float:
    """Of one ranking; NaN where no picture with a score shows the concept. Pictures without a score are left out.

    >>> average_precision(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]))
    0.8333333333333333
    """
    known = ~np.isnan(scores)
    if not np.asarray(present, dtype=bool)[known].any():
        return float("nan")
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=np.float64)
    ranking = Ranking(scores[known], np.asarray(present, dtype=bool)[known])
    return float(ranking.counts(weights[known][:, None]).average_precision(prevalence)[0])
