"""Disparity's main numbers: average precision by concept and group, the gaps, and whether they are more than chance."""

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
from beholder.metrics.multiplicity import benjamini_hochberg
from beholder.metrics.precision_gaps import (
    Precision,
    measured,
    resampled,
    shuffle_p_value,
    shuffled,
    smallest_detectable,
)
from beholder.studies.disparity.scores import Cells, Pair, Seen
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions

AP, COUNT = "average precision", "concepts"
ALPHA = 0.05
NONE, NO_REACH = Interval(np.nan, np.nan), Reach(np.nan, np.nan)
FAULTLESS = "ranked without a fault, or all alike: no interval"
RARE, FINE = 10, 1.25
"""Concepts that fewer shuffles match than this get more, up to so many times what correction needs."""
ROUNDING = 1e-5
"""Draws are float32: intervals narrower than this are rounding."""


@dataclass(frozen=True)
class Gaps:
    """Everything the rows are made of: sets × concepts (× draws), pairs × concepts (× shuffles)."""

    seen: Seen
    found: Precision
    alone: tuple[LeaveOneOut, LeaveOneOut]
    """What leaving out one image after the other tells of it, as it stands and at matched prevalence."""
    draws: Precision
    null: Precision
    """Gaps when labels are shuffled."""
    null_ranges: Cells
    """Highest group less lowest when labels are shuffled, at matched prevalence; of more than two groups."""
    more: Mapping[int, Precision] = field(default_factory=dict)
    """Further shuffled gaps of single concepts, by column: pairs × shuffles."""

    def gap(self, pair: Pair, *, matched: bool) -> Cells:
        """First less second, as it stands; matched: what the counts alone give is taken off."""
        values = self.found.matched if matched else self.found.raw
        gap = values[pair.first] - values[pair.second]
        return np.asarray(gap - self.expected(pair) if matched else gap)

    def expected(self, pair: Pair) -> Cells:
        """The matched gap that shuffled labels give on average: few positives flatter average precision."""
        return _mean(self.null.matched[self._place(pair)], axis=1)

    def interval(self, pair: Pair, column: int, *, matched: bool) -> Interval:
        """Of a gap; none where one side is ranked without a fault, for then nothing tells how sure that is."""
        value = float(self.gap(pair, matched=matched)[column])
        reach = difference_reach(*(self.alone[matched].reach(place, column) for place in (pair.first, pair.second)))
        return Interval(value - reach.below, value + reach.above)

    def drawn(self, pair: Pair, *, matched: bool) -> Cells:
        """The gap in every draw."""
        values = self.draws.matched if matched else self.draws.raw
        return np.asarray(values[pair.first] - values[pair.second])

    def shuffles(self, pair: Pair, *, matched: bool) -> Cells:
        """The gap in every shuffle, around its mean."""
        values = (self.null.matched if matched else self.null.raw)[self._place(pair)]
        return np.asarray(values - _mean(values, axis=1)[:, None])

    def enough(self, pair: Pair) -> np.ndarray:
        """Concepts that at least a few images of both sets show, and a few do not."""
        both = [pair.first, pair.second]
        showing, without = self.seen.showing[both], (self.seen.scored - self.seen.showing)[both]
        return np.asarray((np.minimum(showing, without) >= FEWEST).all(axis=0))

    def p_values(self, pair: Pair, *, matched: bool) -> Cells:
        """Of every concept that enough images show, before correction."""
        values = self.found.matched if matched else self.found.raw
        gaps, place = values[pair.first] - values[pair.second], self._place(pair)
        p_values = np.full(len(gaps), np.nan)
        for column in np.flatnonzero(self.enough(pair)).tolist():
            null = [(self.null.matched if matched else self.null.raw)[place, column]]
            if column in self.more:
                null.append((self.more[column].matched if matched else self.more[column].raw)[place])
            p_values[column] = shuffle_p_value(float(gaps[column]), np.concatenate(null))
        return p_values

    def _place(self, pair: Pair) -> int:
        return self.seen.pairs.index(pair)


def _mean(values: npt.NDArray[Any], *, axis: int) -> Cells:
    """Mean of what is defined; NaN where nothing is."""
    there = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(there, values, 0.0).sum(axis=axis) / there.sum(axis=axis))


def spread(draws: npt.NDArray[Any], value: float) -> Interval:
    """The interval around a value; none where no draw moved it, which says nothing about other images."""
    low, high = centred_interval(draws, value)
    return Interval(low, high) if high - low > ROUNDING else NONE


def find_gaps(seen: Seen, options: MeasureOptions) -> Gaps:
    """Measure, resample and shuffle; as many shuffles as draws, more where correction needs them."""
    found = measured(seen.scores, seen.present, seen.sets)
    alone = left_out(seen.scores, seen.present, seen.sets, seen.people)
    draws = resampled(seen.scores, seen.present, seen.sets, seen.resampler(options))
    rng = options.rng()
    own, rest = shuffled(seen.scores, seen.present, seen.codes, rng, options.draws)
    with np.errstate(all="ignore"):
        ranges = own.matched.max(axis=0) - own.matched.min(axis=0)
    gaps = Gaps(seen, found, alone, draws, Precision(own.raw - rest.raw, own.matched - rest.matched), ranges)
    return replace(gaps, more=_more_shuffles(gaps, rng))


def _more_shuffles(gaps: Gaps, rng: np.random.Generator) -> dict[int, Precision]:
    """More shuffles of the concepts that few shuffles match, where the smallest p possible could not be shown.

    The smallest p is one over the shuffles; after correction over C concepts, s of them at it come to C / s times that.
    """
    seen, draws, concepts = gaps.seen, gaps.draws.raw.shape[-1], len(gaps.seen.concepts)
    p_values = [gaps.p_values(pair, matched=matched) for pair in seen.pairs for matched in (True, False)]
    small = np.flatnonzero((np.array(p_values) <= RARE / (1 + draws)).any(axis=0))
    if not len(small) or concepts <= len(small) * ALPHA * (1 + draws):
        return {}
    further = max(0, math.ceil(FINE * concepts / ALPHA) - draws)
    if not further:
        return {}
    own, rest = shuffled(seen.scores[:, small], seen.present[:, small], seen.codes, rng, further)
    return {
        int(column): Precision(own.raw[:, k] - rest.raw[:, k], own.matched[:, k] - rest.matched[:, k])
        for k, column in enumerate(small)
    }


def gap_rows(gaps: Gaps) -> Iterator[Row]:
    """All rows of one model: means first, then concept by concept."""
    yield from _mean_rows(gaps)
    for pair in gaps.seen.pairs:
        yield from _summary_rows(gaps, pair)
        yield from _pair_rows(gaps, pair)
    yield from _largest_rows(gaps)
    yield from _precision_rows(gaps)


# Groups


def _mean_rows(gaps: Gaps) -> Iterator[Row]:
    """Mean over the concepts that every group shows, as published, and what it hides."""
    seen = gaps.seen
    shared = (seen.showing > 0).all(axis=0)
    n = int(shared.sum())
    for place, group in enumerate(seen.groups):
        if not n:
            yield Row("disparity.mean_average_precision", None, 0, AP, group=group, note="no shared concept")
            continue
        value = float(gaps.found.raw[place, shared].mean())
        low, high = spread(_mean(gaps.draws.raw[place, shared], axis=0), value)
        note = f"over the {n} concepts that every group shows; {int((seen.codes == place).sum())} images"
        yield Row("disparity.mean_average_precision", value, n, AP, group=group, low=low, high=high, note=note)
    for pair in seen.pairs if n else []:
        value = float(gaps.gap(pair, matched=False)[shared].mean())
        low, high = spread(_mean(gaps.drawn(pair, matched=False)[shared], axis=0), value)
        note = f"over {n} concepts; says nothing about single ones"
        yield Row("disparity.mean_ap_gap", value, n, AP, group=pair.name, low=low, high=high, note=note)


def _summary_rows(gaps: Gaps, pair: Pair) -> Iterator[Row]:
    """How many gaps are shown, and how wide gaps are on average, beside what chance gives."""
    enough = gaps.enough(pair)
    n = int(enough.sum())
    if not n:
        note = f"no concept is shown by {FEWEST} images of both"
        yield Row("disparity.gap_spread", None, 0, AP, group=pair.name, note=note)
        return
    adjusted = benjamini_hochberg(gaps.p_values(pair, matched=True))[enough]
    note = f"p ≤ {ALPHA:g} after Benjamini–Hochberg over {n} concepts"
    yield Row("disparity.gaps_shown", float((adjusted <= ALPHA).sum()), n, COUNT, group=pair.name, note=note)
    value = float(np.abs(gaps.gap(pair, matched=True)[enough]).mean())
    by_chance = _mean(np.abs(gaps.shuffles(pair, matched=True)[enough]), axis=0)
    low, high = np.quantile(by_chance, [0.025, 0.975])
    note = f"mean distance from 0 over {n} concepts, at matched prevalence"
    yield Row("disparity.gap_spread", value, n, AP, group=pair.name, note=note)
    row = Row("disparity.gap_spread_expected", float(by_chance.mean()), n, AP, group=pair.name)
    yield row._replace(low=float(low), high=float(high), note="the same when labels are shuffled")


def _precision_rows(gaps: Gaps) -> Iterator[Row]:
    """Average precision and prevalence of every concept in every group."""
    seen = gaps.seen
    for place, group in enumerate(seen.groups):
        for column, concept in enumerate(seen.concepts):
            showing, n = int(seen.showing[place, column]), int(seen.scored[place, column])
            row = Row("", None, n, AP, group=group, concept=concept, note=f"{showing} of {n} images show it")
            low, high = exact_proportion_interval(showing, n) if n else NONE
            share = showing / n if n else None
            yield row._replace(
                metric="disparity.prevalence",
                value=share,
                unit=PROBABILITY,
                low=low,
                high=high,
                note=None if n else "no image of the group has a score",
            )
            for metric, alone in zip(("average_precision", "average_precision_matched"), gaps.alone, strict=True):
                value = float(alone.value[place, column])
                reach = NO_REACH if showing < FEWEST else alone.reach(place, column)
                note = join((row.note, _why(showing, n, certain=np.isnan(reach.below))))
                made = row._replace(metric=f"disparity.{metric}", value=value, note=note)
                yield made._replace(low=value - reach.below, high=value + reach.above)


def _why(showing: int, n: int, *, certain: bool) -> str | None:
    """Why there is no interval."""
    if not certain or not showing:
        return None
    if showing == n:
        return "every image shows it"
    return f"fewer than {FEWEST}: no interval" if showing < FEWEST else FAULTLESS


# Pairs


def _pair_rows(gaps: Gaps, pair: Pair) -> Iterator[Row]:
    """The gap as published, the gap at matched prevalence, and what could have been found."""
    seen, enough, expected = gaps.seen, gaps.enough(pair), gaps.expected(pair)
    for matched, metric in ((False, "disparity.ap_gap"), (True, "disparity.ap_gap_matched")):
        values = gaps.gap(pair, matched=matched)
        p_values = gaps.p_values(pair, matched=matched)
        adjusted = benjamini_hochberg(p_values)
        for column, concept in enumerate(seen.concepts):
            value = float(values[column])
            counts = [int(seen.showing[place, column]) for place in (pair.first, pair.second)]
            n = sum(int(seen.scored[place, column]) for place in (pair.first, pair.second))
            said = [f"shown by {counts[0]} and {counts[1]} images", _absent(seen, pair, column)]
            if enough[column]:
                low, high = gaps.interval(pair, column, matched=matched)
                said.append(None if np.isfinite(low) else FAULTLESS)
                taken = f", {100 * expected[column]:+.1f} points of the counts' own taken off" if matched else ""
                said.append(f"p {p_values[column]:.2g} before correction over {int(enough.sum())} concepts{taken}")
            else:
                low, high = NONE
            row = Row(metric, value, n, AP, group=pair.name, concept=concept, low=low, high=high)
            yield row._replace(p_value=float(adjusted[column]), note=join(said))
    for column in np.flatnonzero(enough).tolist():
        value = smallest_detectable(gaps.shuffles(pair, matched=True)[column])
        n = sum(int(seen.showing[place, column]) for place in (pair.first, pair.second))
        note = "found at p ≤ 0.05 in four of five such data sets; for one concept, before correction"
        if value < ROUNDING:
            value, note = np.nan, "no shuffle moves the gap: all are ranked alike"
        row = Row("disparity.gap_detectable", value, n, AP, group=pair.name, note=note)
        yield row._replace(concept=seen.concepts[column])


def _absent(seen: Seen, pair: Pair, column: int) -> str | None:
    """Why a gap has no interval, or no value."""
    showing, scored = (table[[pair.first, pair.second], column] for table in (seen.showing, seen.scored))
    if not scored.all():
        return "no score for one of them"
    if not showing.all():
        return "one of them shows it nowhere: no gap"
    if (showing == scored).any():
        return "one of them shows it everywhere: no gap at matched prevalence"
    few = (np.minimum(showing, scored - showing) < FEWEST).any()
    return f"fewer than {FEWEST} with it or without it in one of them: no interval, no test" if few else None


def _largest_rows(gaps: Gaps) -> Iterator[Row]:
    """Of more than two groups, the one with the highest and the one with the lowest average precision."""
    seen, many = gaps.seen, len(gaps.seen.groups)
    if many == 2:
        return
    enough = np.all([gaps.enough(pair) for pair in seen.pairs], axis=0)
    values = gaps.found.matched[:many]
    p_values = np.full(len(seen.concepts), np.nan)
    for column in np.flatnonzero(enough).tolist():
        width = float(np.ptp(values[:, column]))
        more = (gaps.null_ranges[column] >= width).sum()
        p_values[column] = (1 + more) / (1 + gaps.null_ranges.shape[1])
    adjusted = benjamini_hochberg(p_values)
    for column in np.flatnonzero(enough).tolist():
        top, bottom = int(values[:, column].argmax()), int(values[:, column].argmin())
        value = float(values[top, column] - values[bottom, column])
        reach = difference_reach(*(gaps.alone[True].reach(place, column) for place in (top, bottom)))
        usual = float(gaps.null_ranges[column].mean())
        note = f"at matched prevalence; shuffled labels give {100 * usual:.1f} points on average"
        row = Row("disparity.ap_gap_largest", value, int(seen.scored[:many, column].sum()), AP, note=note)
        pair = f"{seen.groups[top]} less {seen.groups[bottom]}"
        yield row._replace(
            group=pair,
            concept=seen.concepts[column],
            low=value - reach.below,
            high=value + reach.above,
            p_value=float(adjusted[column]),
        )
