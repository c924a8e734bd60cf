"""Disparity's main numbers: average precision by concept and group, the gaps, and whether they exceed chance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST, Interval, centred_interval, exact_proportion_interval
from beholder.metrics.intervals import Reach, difference_reach
from beholder.metrics.leave_one_out import LeaveOneOut, left_out
from beholder.metrics.multiplicity import ALPHA, benjamini_hochberg
from beholder.metrics.precision_gaps import (
    Precision,
    measured,
    resampled,
    shuffle_p_value,
    shuffled,
    smallest_detectable,
)
from beholder.studies.disparity.scores import Cells, Comparison, ConceptScores
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions

AP, COUNT = "average precision", "concepts"
NONE, NO_REACH = Interval(np.nan, np.nan), Reach(np.nan, np.nan)
FAULTLESS = "ranked without an error, or all scores equal: no interval"
RARE, FINE = 10, 1.25
"""A concept that fewer than RARE shuffles match gets more shuffles: FINE times what the correction needs."""
ROUNDING = 1e-5
"""Draws are float32: intervals narrower than this are rounding."""


@dataclass(frozen=True)
class Gaps:
    """What the rows are computed from: sets × concepts (× draws), pairs × concepts (× shuffles)."""

    data: ConceptScores
    precision: Precision
    alone: tuple[LeaveOneOut, LeaveOneOut]
    """The precision with each image left out in turn: as it is, and at matched prevalence."""
    draws: Precision
    null: Precision
    """The gaps with shuffled labels."""
    null_ranges: Cells
    """Highest group less lowest with shuffled labels, at matched prevalence; for more than two groups."""
    more: Mapping[int, Precision] = field(default_factory=dict)
    """More shuffled gaps of single concepts, by column: pairs × shuffles."""

    def gap(self, pair: Comparison, *, matched: bool) -> Cells:
        """First less second; matched: at one prevalence, less the gap that the counts alone produce."""
        gap = self.precision[matched][pair.first] - self.precision[matched][pair.second]
        return np.asarray(gap - self.expected(pair) if matched else gap)

    def expected(self, pair: Comparison) -> Cells:
        """The mean matched gap with shuffled labels: average precision is too high where few images show a concept."""
        return _mean(self.null.matched[self._index(pair)], axis=1)

    def interval(self, pair: Comparison, column: int, *, matched: bool) -> Interval:
        """The interval of a gap; none where one side is ranked without an error, because its error is then unknown."""
        value = float(self.gap(pair, matched=matched)[column])
        reach = difference_reach(*(self.alone[matched].reach(index, column) for index in pair.both))
        return Interval(value - reach.below, value + reach.above)

    def drawn(self, pair: Comparison, *, matched: bool) -> Cells:
        """The gap in every draw."""
        return np.asarray(self.draws[matched][pair.first] - self.draws[matched][pair.second])

    def shuffles(self, pair: Comparison, *, matched: bool) -> Cells:
        """The gap in every shuffle, around its mean."""
        values = self.null[matched][self._index(pair)]
        return np.asarray(values - _mean(values, axis=1)[:, None])

    def enough(self, pair: Comparison) -> np.ndarray:
        """Concepts that at least five images of both sets show and at least five do not."""
        showing, without = self.data.showing[pair.both], (self.data.scored - self.data.showing)[pair.both]
        return np.asarray((np.minimum(showing, without) >= FEWEST).all(axis=0))

    def p_values(self, pair: Comparison, *, matched: bool) -> Cells:
        """The p-value of every concept that enough images show, before correction."""
        values, index = self.precision[matched], self._index(pair)
        gaps = values[pair.first] - values[pair.second]
        p_values = np.full(len(gaps), np.nan)
        for column in np.flatnonzero(self.enough(pair)).tolist():
            null = [self.null[matched][index, column]]
            if column in self.more:
                null.append(self.more[column][matched][index])
            p_values[column] = shuffle_p_value(float(gaps[column]), np.concatenate(null))
        return p_values

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
    own, rest = shuffled(data.scores, data.present, data.codes, rng, options.draws)
    with np.errstate(all="ignore"):
        ranges = own.matched.max(axis=0) - own.matched.min(axis=0)
    gaps = Gaps(data, precision, alone, draws, Precision(own.raw - rest.raw, own.matched - rest.matched), ranges)
    return replace(gaps, more=_more_shuffles(gaps, rng))


def _more_shuffles(gaps: Gaps, rng: np.random.Generator) -> dict[int, Precision]:
    """More shuffles for concepts with the smallest p-values, where too few shuffles could never show a gap.

    The smallest possible p is 1 / (1 + shuffles). If s of C concepts have it, correction multiplies it by C / s.
    """
    data, draws, concepts = gaps.data, gaps.draws.raw.shape[-1], len(gaps.data.concepts)
    p_values = [gaps.p_values(pair, matched=matched) for pair in data.pairs for matched in (True, False)]
    small = np.flatnonzero((np.array(p_values) <= RARE / (1 + draws)).any(axis=0))
    further = math.ceil(FINE * concepts / ALPHA) - draws
    if not len(small) or concepts <= len(small) * ALPHA * (1 + draws) or further <= 0:
        return {}
    own, rest = shuffled(data.scores[:, small], data.present[:, small], data.codes, rng, further)
    return {
        int(column): Precision(own.raw[:, k] - rest.raw[:, k], own.matched[:, k] - rest.matched[:, k])
        for k, column in enumerate(small)
    }


def gap_rows(gaps: Gaps) -> Iterator[Row]:
    """All rows of one model: means first, then each concept."""
    yield from _mean_rows(gaps)
    for pair in gaps.data.pairs:
        yield from _summary_rows(gaps, pair)
        yield from _pair_rows(gaps, pair)
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
        note = f"mean over {n} concepts; single concepts can differ while the mean does not"
        yield pair.row("mean_ap_gap", value, n, AP, low=low, high=high, note=note)


def _summary_rows(gaps: Gaps, pair: Comparison) -> Iterator[Row]:
    """How many gaps are shown; how wide gaps are on average, and how wide with shuffled labels."""
    enough = gaps.enough(pair)
    n = int(enough.sum())
    spread_row = pair.row("gap_spread", None, n, AP)
    if not n:
        yield spread_row._replace(note=f"no concept is shown by {FEWEST} images of both groups")
        return
    adjusted = benjamini_hochberg(gaps.p_values(pair, matched=True))[enough]
    note = f"p ≤ {ALPHA:g} after Benjamini–Hochberg over {n} concepts"
    count = spread_row._replace(metric="disparity.gaps_shown", unit=COUNT, note=note)
    yield count._replace(value=float((adjusted <= ALPHA).sum()))
    value = float(np.abs(gaps.gap(pair, matched=True)[enough]).mean())
    by_chance = _mean(np.abs(gaps.shuffles(pair, matched=True)[enough]), axis=0)
    low, high = np.quantile(by_chance, [0.025, 0.975])
    note = f"mean distance from 0 over {n} concepts, at matched prevalence"
    yield spread_row._replace(value=value, note=note)
    chance = spread_row._replace(metric="disparity.gap_spread_expected", value=float(by_chance.mean()))
    yield chance._replace(low=float(low), high=float(high), note="the same with shuffled labels")


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
        p_values = gaps.p_values(pair, matched=matched)
        adjusted = benjamini_hochberg(p_values)
        for column, concept in enumerate(data.concepts):
            value = float(values[column])
            first, second = data.showing[pair.both, column].tolist()
            low, high = gaps.interval(pair, column, matched=matched) if enough[column] else NONE
            notes = [f"shown by {first} and {second} images", _absent(data, pair, column)]
            if enough[column]:
                notes.append(None if np.isfinite(low) else FAULTLESS)
                removed = f"; {100 * expected[column]:+.1f} points due to the counts alone removed" if matched else ""
                notes.append(f"p {p_values[column]:.2g} before correction over {int(enough.sum())} concepts{removed}")
            row = pair.row(metric, value, int(data.scored[pair.both, column].sum()), AP, low=low, high=high)
            yield row._replace(concept=concept, p_value=float(adjusted[column]), note=join(notes))
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


def _largest_rows(gaps: Gaps) -> Iterator[Row]:
    """For more than two groups: the group with the highest average precision against the one with the lowest."""
    data, many = gaps.data, len(gaps.data.groups)
    if many == 2:
        return
    enough = np.all([gaps.enough(pair) for pair in data.pairs], axis=0)
    values = gaps.precision.matched[:many]
    p_values = np.full(len(data.concepts), np.nan)
    for column in np.flatnonzero(enough).tolist():
        width = float(np.ptp(values[:, column]))
        more = (gaps.null_ranges[column] >= width).sum()
        p_values[column] = (1 + more) / (1 + gaps.null_ranges.shape[1])
    adjusted = benjamini_hochberg(p_values)
    for column in np.flatnonzero(enough).tolist():
        top, bottom = int(values[:, column].argmax()), int(values[:, column].argmin())
        ends = Comparison(data.groups[top], data.groups[bottom], top, bottom)
        value = float(values[top, column] - values[bottom, column])
        reach = difference_reach(*(gaps.alone[True].reach(index, column) for index in ends.both))
        usual = float(gaps.null_ranges[column].mean())
        note = f"at matched prevalence; shuffled labels give {100 * usual:.1f} points on average"
        row = ends.row("ap_gap_largest", value, int(data.scored[:many, column].sum()), AP, note=note)
        row = row._replace(concept=data.concepts[column], p_value=float(adjusted[column]))
        yield row._replace(low=value - reach.below, high=value + reach.above)
