"""Disparity's main numbers: average precision by concept and group, the gaps, and whether they exceed chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from beholder.chapter.numbers import p_value
from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST, Interval, centred_interval, exact_proportion_interval
from beholder.metrics.intervals import Reach, difference_reach
from beholder.metrics.leave_one_out import LeaveOneOut, left_out
from beholder.metrics.multiplicity import ALPHA, benjamini_hochberg, holm, shuffles_for
from beholder.metrics.precision_gaps import (
    Precision,
    exceed_p_value,
    is_floor,
    measured,
    resampled,
    shuffle_p_value,
    shuffled,
    smallest_detectable,
)
from beholder.metrics.simultaneous import simultaneous_band
from beholder.studies.disparity.scores import Cells, Comparison, ConceptScores
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions

AP, COUNT = "average precision", "concepts"
NONE, NO_REACH = Interval(np.nan, np.nan), Reach(np.nan, np.nan)
FAULTLESS = "ranked without an error, or all scores equal: no interval"
RARE = 10
"""A concept that fewer shuffles match gets more shuffles, if the correction needs them."""
ROUNDING = 1e-5
"""Draws are float32: intervals narrower than this are rounding."""


class Shuffles(NamedTuple):
    """What shuffled labels give: pairs × concepts × shuffles."""

    gaps: Precision
    ranges: Cells
    """Highest group less lowest, at matched prevalence; for more than two groups: concepts × shuffles."""


class Tests(NamedTuple):
    """p-values of all concepts: from shuffles alone, corrected over pairs and concepts, and whether they are bounds."""

    alone: Cells
    p_values: Cells
    at_most: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Gaps:
    """What the rows are computed from: sets × concepts (× draws)."""

    data: ConceptScores
    precision: Precision
    alone: tuple[LeaveOneOut, LeaveOneOut]
    """The precision with each image left out in turn: as it is, and at matched prevalence."""
    draws: Precision
    null: Shuffles
    more: Mapping[int, Shuffles] = field(default_factory=dict)
    """More shuffles of single concepts, by column: their arrays have one concept."""

    def gap(self, pair: Comparison, *, matched: bool) -> Cells:
        """First less second; matched: at one prevalence, less the gap that the counts alone produce."""
        gap = self.precision[matched][pair.first] - self.precision[matched][pair.second]
        return np.asarray(gap - self.expected(pair) if matched else gap)

    def expected(self, pair: Comparison) -> Cells:
        """The mean matched gap with shuffled labels: average precision is too high where few images show a concept."""
        return _mean(self.null.gaps.matched[self._index(pair)], axis=1)

    def interval(self, pair: Comparison, column: int, *, matched: bool, level: float = 0.95) -> Interval:
        """The interval of a gap; none where one side is ranked without an error, because its error is then unknown."""
        value = float(self.gap(pair, matched=matched)[column])
        reach = difference_reach(*(self.alone[matched].reach(index, column, level) for index in pair.both))
        return Interval(value - reach.below, value + reach.above)

    def level_of_all(self, pair: Comparison) -> float:
        """The level of each tested concept's interval at which all of them together hold in 95 of 100 data sets."""
        columns = self.enough(pair)
        multiplier = simultaneous_band(self.gap(pair, matched=True)[columns], self.drawn(pair, matched=True)[columns].T)
        return 1 - 2 * float(ndtr(-multiplier.multiplier))

    def drawn(self, pair: Comparison, *, matched: bool) -> Cells:
        """The gap in every draw."""
        return np.asarray(self.draws[matched][pair.first] - self.draws[matched][pair.second])

    def shuffles(self, pair: Comparison, *, matched: bool) -> Cells:
        """The gap in every shuffle; matched: around its mean."""
        values = self.null.gaps[matched][self._index(pair)]
        return np.asarray(values - _mean(values, axis=1)[:, None] if matched else values)

    def enough(self, pair: Comparison) -> np.ndarray:
        """Concepts that at least five images of both sets show and at least five do not."""
        showing, without = self.data.showing[pair.both], (self.data.scored - self.data.showing)[pair.both]
        return np.asarray((np.minimum(showing, without) >= FEWEST).all(axis=0))

    def tests(self, pair: Comparison, *, matched: bool) -> Tests:
        """The test of every concept that enough images show."""
        p_values, at_most = self._tests[matched]
        index = self._index(pair)
        adjusted = benjamini_hochberg(p_values.ravel()).reshape(p_values.shape)
        return Tests(p_values[index], adjusted[index], at_most[index])

    def shown(self, pair: Comparison) -> np.ndarray:
        """Concepts whose gap is shown: a corrected p of at most 0.05, and an interval without 0."""
        called = self.tests(pair, matched=True).p_values <= ALPHA
        for column in np.flatnonzero(called).tolist():
            low, high = self.interval(pair, column, matched=True)
            called[column] = low > 0 or high < 0
        return np.asarray(called)

    @cached_property
    def _tests(self) -> tuple[tuple[Cells, np.ndarray], tuple[Cells, np.ndarray]]:
        """For gaps as published and at matched prevalence: pairs × concepts, before correction."""
        return self._all_tests(matched=False), self._all_tests(matched=True)

    def _all_tests(self, *, matched: bool) -> tuple[Cells, np.ndarray]:
        values, pairs = self.precision[matched], self.data.pairs
        p_values = np.full((len(pairs), len(self.data.concepts)), np.nan)
        at_most = np.zeros(p_values.shape, dtype=bool)
        for index, pair in enumerate(pairs):
            gaps = values[pair.first] - values[pair.second]
            for column in np.flatnonzero(self.enough(pair)).tolist():
                null = [self.null.gaps[matched][index, column]]
                if column in self.more:
                    null.append(self.more[column].gaps[matched][index, 0])
                shuffles = np.concatenate(null)
                p_values[index, column] = shuffle_p_value(float(gaps[column]), shuffles)
                at_most[index, column] = is_floor(p_values[index, column], shuffles)
        return p_values, at_most

    def _index(self, pair: Comparison) -> int:
        return self.data.pairs.index(pair)


def _mean(values: npt.NDArray[Any], *, axis: int) -> Cells:
    """The mean of the finite values; NaN where there are none."""
    there = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(there, values, 0.0).sum(axis=axis) / there.sum(axis=axis))


def spread(draws: npt.NDArray[Any], value: float) -> Interval:
    """The interval around a value; none where all draws are equal, because they say nothing about other images."""
    low, high = centred_interval(draws, value)
    return Interval(low, high) if high - low > ROUNDING else NONE


def find_gaps(data: ConceptScores, options: MeasureOptions) -> Gaps:
    """Measure, resample and shuffle: as many shuffles as draws, and more where the correction needs them."""
    precision = measured(data.scores, data.present, data.sets)
    alone = left_out(data.scores, data.present, data.sets, data.people)
    draws = resampled(data.scores, data.present, data.sets, data.resampler(options))
    rng = options.rng()
    enough = max(options.draws, shuffles_for(len(data.pairs), least=0))
    gaps = Gaps(data, precision, alone, draws, _shuffles(data, np.arange(len(data.concepts)), rng, enough))
    return replace(gaps, more=_more_shuffles(gaps, rng))


def _shuffles(data: ConceptScores, columns: np.ndarray, rng: np.random.Generator, draws: int) -> Shuffles:
    scores, present = data.scores[:, columns], data.present[:, columns]
    own, rest = shuffled(scores, present, data.codes, rng, draws, people=data.people)
    with np.errstate(all="ignore"):
        ranges = own.matched.max(axis=0) - own.matched.min(axis=0)
    return Shuffles(Precision(own.raw - rest.raw, own.matched - rest.matched), ranges)


def _more_shuffles(gaps: Gaps, rng: np.random.Generator) -> dict[int, Shuffles]:
    """More shuffles for concepts with the smallest p-values, where too few shuffles could never show a gap.

    The smallest possible p is 1 / (1 + shuffles). If s of C concepts have it, correction multiplies it by C / s.
    """
    draws, (pairs, concepts) = gaps.null.ranges.shape[-1], gaps.null.gaps.raw.shape[:2]
    small = np.zeros(concepts, dtype=bool)
    for pair in gaps.data.pairs:
        for matched in (True, False):
            small |= gaps.tests(pair, matched=matched).alone <= RARE / (1 + draws)
    columns = np.flatnonzero(small)
    further = shuffles_for(pairs * concepts) - draws
    if not len(columns) or pairs * concepts <= len(columns) * ALPHA * (1 + draws) or further <= 0:
        return {}
    more = _shuffles(gaps.data, columns, rng, further)
    return {
        column: Shuffles(Precision(*(each[:, [k]] for each in more.gaps)), more.ranges[[k]])
        for k, column in enumerate(columns.tolist())
    }


def gap_rows(gaps: Gaps) -> Iterator[Row]:
    """All rows of one model: means first, then each concept."""
    yield from _mean_rows(gaps)
    yield from _summary_rows(gaps)
    for pair in gaps.data.pairs:
        yield from _pair_rows(gaps, pair)
        yield from _simultaneous_rows(gaps, pair)
    yield from _largest_rows(gaps)
    yield from _precision_rows(gaps)


def _mean_rows(gaps: Gaps) -> Iterator[Row]:
    """The mean over the concepts that every group shows, as published."""
    data = gaps.data
    shared = (data.showing > 0).all(axis=0)
    n = int(shared.sum())
    for index, group in enumerate(data.groups):
        row = Row("disparity.mean_average_precision", None, n, AP, group=group)
        if not n:
            yield row._replace(note="no concept is shown in every group")
            continue
        value = float(gaps.precision.raw[index, shared].mean())
        low, high = spread(_mean(gaps.draws.raw[index, shared], axis=0), value)
        note = f"over the {n} concepts that every group shows; {int((data.codes == index).sum())} images"
        yield row._replace(value=value, low=low, high=high, note=note)
    for pair in data.pairs if n else []:
        value = float(gaps.gap(pair, matched=False)[shared].mean())
        low, high = spread(_mean(gaps.drawn(pair, matched=False)[shared], axis=0), value)
        note = f"mean over {n} concepts; depends on prevalence and on few images: read mean_ap_gap_matched"
        yield pair.row("mean_ap_gap", value, n, AP, low=low, high=high, note=note)


class _Together(NamedTuple):
    """All tested concepts of a pair at once: a number, the same with shuffled labels, and the test."""

    value: float
    shuffles: Cells
    p_value: float


def _summary_rows(gaps: Gaps) -> Iterator[Row]:
    """How many gaps are shown; the mean gap; how wide gaps are on average, and how wide with shuffled labels.

    The tests of all concepts at once are corrected over pairs.
    """
    means, widths = [], []
    for pair in gaps.data.pairs:
        enough = gaps.enough(pair)
        values, null = gaps.gap(pair, matched=True)[enough], gaps.shuffles(pair, matched=True)[enough]
        means.append(_together(values, null, two_sided=True))
        widths.append(_together(np.abs(values), np.abs(null), two_sided=False))
    corrected = [holm(np.array([each.p_value for each in tests])) for tests in (means, widths)]
    for index, pair in enumerate(gaps.data.pairs):
        n = int(gaps.enough(pair).sum())
        row = pair.row("gap_spread", None, n, AP)
        if not n:
            yield row._replace(note=f"no concept is shown by {FEWEST} images of both groups")
            continue
        note = f"p ≤ {ALPHA:g} after Benjamini–Hochberg and an interval without 0, of {n} concepts"
        count = float(gaps.shown(pair).sum())
        yield row._replace(metric="disparity.gaps_shown", unit=COUNT, value=count, note=note)
        yield _mean_gap_row(gaps, pair, means[index])._replace(
            p_value=float(corrected[0][index]), p_at_most=is_floor(means[index].p_value, means[index].shuffles)
        )
        yield from _spread_rows(row, widths[index], float(corrected[1][index]))


def _together(values: Cells, null: Cells, *, two_sided: bool) -> _Together:
    """The mean over concepts, tested against its shuffles."""
    if not len(values):
        return _Together(np.nan, np.array([]), np.nan)
    value, shuffles = float(values.mean()), _mean(null, axis=0)
    p_value = shuffle_p_value(value, shuffles) if two_sided else exceed_p_value(value, shuffles)
    return _Together(value, shuffles, p_value)


def _mean_gap_row(gaps: Gaps, pair: Comparison, mean: _Together) -> Row:
    """The mean of the matched gaps; its interval is that of draws of images.

    Draws of n images vary less than data sets, by the factor n / (n - 1) of the variance. Here n is how many images
    show a concept, of the group with fewer.
    """
    enough = gaps.enough(pair)
    draws, n = gaps.drawn(pair, matched=True)[enough], gaps.data.showing[pair.both].min(axis=0)[enough]
    moved = (draws - _mean(draws, axis=1)[:, None]) * np.sqrt(n / (n - 1))[:, None]
    low, high = spread(_mean(moved, axis=0), mean.value)
    note = f"mean over {len(n)} concepts at matched prevalence; p: from shuffled labels"
    return pair.row("mean_ap_gap_matched", mean.value, len(n), AP, low=low, high=high, note=note)


def _spread_rows(row: Row, width: _Together, p_value: float) -> Iterator[Row]:
    """The omnibus test: is the mean width of all gaps larger than with shuffled labels?"""
    low, high = np.quantile(width.shuffles, [0.025, 0.975]).tolist()
    usual = float(width.shuffles.mean())
    note = f"mean distance from 0 over {row.n} concepts, at matched prevalence; p: from shuffled labels"
    floor = is_floor(width.p_value, width.shuffles)
    yield row._replace(value=width.value, p_value=p_value, p_at_most=floor, expected=usual, note=note)
    chance = row._replace(metric="disparity.gap_spread_expected", value=usual, low=low, high=high)
    yield chance._replace(note="the same with shuffled labels")


def _precision_rows(gaps: Gaps) -> Iterator[Row]:
    """Average precision and prevalence of every concept in every group."""
    data = gaps.data
    for index, group in enumerate(data.groups):
        for column, concept in enumerate(data.concepts):
            showing, n = int(data.showing[index, column]), int(data.scored[index, column])
            low, high = exact_proportion_interval(showing, n) if n else NONE
            row = Row("disparity.prevalence", showing / n if n else None, n, PROBABILITY, group=group, concept=concept)
            yield row._replace(low=low, high=high, note=None if n else "no image of the group has a score")
            for metric, alone in zip(("average_precision", "average_precision_matched"), gaps.alone, strict=True):
                value = float(alone.value[index, column])
                reach = NO_REACH if showing < FEWEST else alone.reach(index, column)
                note = join((f"{showing} of {n} images show it", _why(showing, n, certain=np.isnan(reach.below))))
                made = row._replace(metric=f"disparity.{metric}", value=value, unit=AP, note=note)
                yield made._replace(low=value - reach.below, high=value + reach.above)


def _why(showing: int, n: int, *, certain: bool) -> str | None:
    """The reason why there is no interval, if there is none."""
    if not certain or not showing:
        return None
    if showing == n:
        return "every image shows it"
    return f"fewer than {FEWEST}: no interval" if showing < FEWEST else FAULTLESS


def _pair_rows(gaps: Gaps, pair: Comparison) -> Iterator[Row]:
    """The gap as published, the gap at matched prevalence, and the smallest gap that could have been shown."""
    data, enough, expected = gaps.data, gaps.enough(pair), gaps.expected(pair)
    for matched, metric in ((False, "ap_gap"), (True, "ap_gap_matched")):
        values = gaps.gap(pair, matched=matched)
        tests = gaps.tests(pair, matched=matched)
        for column, concept in enumerate(data.concepts):
            value = float(values[column])
            first, second = data.showing[pair.both, column].tolist()
            low, high = gaps.interval(pair, column, matched=matched) if enough[column] else NONE
            notes = [f"shown by {first} and {second} images", _absent(data, pair, column)]
            if enough[column]:
                notes.append(None if np.isfinite(low) else FAULTLESS)
                removed = f"; {100 * expected[column]:+.1f} points due to the counts alone removed" if matched else ""
                alone = p_value(float(tests.alone[column]), bool(tests.at_most[column]))
                notes.append(f"p {alone} before correction over {int(enough.sum())} concepts{removed}")
            row = pair.row(metric, value, int(data.scored[pair.both, column].sum()), AP, low=low, high=high)
            row = row._replace(concept=concept, p_value=float(tests.p_values[column]), note=join(notes))
            yield row._replace(p_at_most=bool(tests.at_most[column]) if enough[column] else None)
    for column in np.flatnonzero(enough).tolist():
        value = smallest_detectable(gaps.shuffles(pair, matched=True)[column])
        n = int(data.showing[pair.both, column].sum())
        note = "found at p ≤ 0.05 in four of five such data sets; for one concept, before correction"
        if value < ROUNDING:
            value, note = np.nan, "no shuffle changes the gap: all images are ranked alike"
        yield pair.row("gap_detectable", value, n, AP, concept=data.concepts[column], note=note)


def _absent(data: ConceptScores, pair: Comparison, column: int) -> str | None:
    """The reason why a gap has no value or no interval, if it has none."""
    showing, scored = (table[pair.both, column] for table in (data.showing, data.scored))
    if not scored.all():
        return "one of the groups has no score"
    if not showing.all():
        return "no image of one group shows it: no gap"
    if (showing == scored).any():
        return "every image of one group shows it: no gap at matched prevalence"
    few = (np.minimum(showing, scored - showing) < FEWEST).any()
    return f"fewer than {FEWEST} images of one group with it or without it: no interval, no test" if few else None


def _simultaneous_rows(gaps: Gaps, pair: Comparison) -> Iterator[Row]:
    """Every matched gap with bounds that hold for all concepts at once: for sentences that pick the widest."""
    data, columns = gaps.data, np.flatnonzero(gaps.enough(pair)).tolist()
    if not columns:
        return
    level, values = gaps.level_of_all(pair), gaps.gap(pair, matched=True)
    for column in columns:
        low, high = gaps.interval(pair, column, matched=True, level=level)
        note = f"bounds hold for all {len(columns)} concepts at once" if np.isfinite(low) else FAULTLESS
        row = pair.row("ap_gap_simultaneous", float(values[column]), int(data.scored[pair.both, column].sum()), AP)
        yield row._replace(concept=data.concepts[column], low=low, high=high, note=note)


def _largest_rows(gaps: Gaps) -> Iterator[Row]:
    """For more than two groups: the group with the highest average precision against the one with the lowest.

    The interval allows for every pair of groups that could have been picked (Bonferroni).
    """
    data, many = gaps.data, len(gaps.data.groups)
    if many == 2:
        return
    enough = np.all([gaps.enough(pair) for pair in data.pairs], axis=0)
    values, level = gaps.precision.matched[:many], 1 - ALPHA / len(list(combinations(range(many), 2)))
    p_values, at_most = np.full(len(data.concepts), np.nan), np.zeros(len(data.concepts), dtype=bool)
    for column in np.flatnonzero(enough).tolist():
        null = [gaps.null.ranges[column], *(gaps.more[k].ranges[0] for k in [column] if k in gaps.more)]
        shuffles = np.concatenate(null)
        p_values[column] = exceed_p_value(float(np.ptp(values[:, column])), shuffles)
        at_most[column] = is_floor(p_values[column], shuffles)
    adjusted = benjamini_hochberg(p_values)
    for column in np.flatnonzero(enough).tolist():
        top, bottom = int(values[:, column].argmax()), int(values[:, column].argmin())
        ends = Comparison(data.groups[top], data.groups[bottom], top, bottom)
        value = float(values[top, column] - values[bottom, column])
        reach = difference_reach(*(gaps.alone[True].reach(index, column, level) for index in ends.both))
        usual = float(gaps.null.ranges[column].mean())
        note = f"at matched prevalence; shuffled labels give {100 * usual:.1f} points on average"
        row = ends.row("ap_gap_largest", value, int(data.scored[:many, column].sum()), AP, note=note)
        row = row._replace(concept=data.concepts[column], p_value=float(adjusted[column]), expected=usual)
        yield row._replace(low=value - reach.below, high=value + reach.above, p_at_most=bool(at_most[column]))
