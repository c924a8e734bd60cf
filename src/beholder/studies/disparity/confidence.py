"""Disparity's calibration: does a confidence mean the same for images of every group?

Measured only if scores are probabilities or were converted on request. Expected calibration error is the published
measure; miscalibration is the one to compare groups by, because it depends neither on their sizes nor on how often they
show the concept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.calibration import BINS, Array, Calibrated, equal_width_bins, reliability
from beholder.metrics.intervals import Reach, clustered_share_interval, difference_reach
from beholder.metrics.miscalibration import MatchedBins, Miscalibration, miscalibration
from beholder.metrics.multiplicity import ALPHA, benjamini_hochberg, shuffles_for
from beholder.metrics.precision_gaps import (
    Keys,
    each_concept,
    is_floor,
    prevalences,
    shuffle_keys,
    shuffle_p_value,
    shuffled_labels,
)
from beholder.studies.disparity.gaps import NONE, RARE, spread
from beholder.studies.disparity.scores import Cells, Comparison, ConceptScores, Confidence, Mask
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions

UNIT, SQUARED = "calibration error", "squared calibration error"
Counts = npt.NDArray[np.int_]
KINDS = ("ece", "ece_adaptive", "brier")
FEW_TO_MATCH = "fewer than two images with the concept or without it: prevalence cannot be matched"
FEW_TO_TEST = f"fewer than {FEWEST} images of one group with it or without it: no interval, no test"
DRAWN = 5
"""How many concepts get a reliability diagram: those with the widest gaps."""


def calibration_rows(data: ConceptScores, confidence: Confidence, options: MeasureOptions) -> Iterator[Row]:
    """Calibration error and Brier score by concept and group, their gaps, and reliability diagrams."""
    if confidence.values is None:
        yield Row("disparity.ece", None, 0, UNIT, note=confidence.source)
        return
    values = confidence.values
    errors = _calibrations(data, values, [np.ones((len(values), 1))], 1)[..., 0]
    parts = (np.ascontiguousarray(part.T) for part in data.resampler(options).weights())
    draws = _calibrations(data, values, parts, options.draws)
    known = np.stack([(~np.isnan(values[members])).sum(axis=0) for members in data.sets])
    for index, group in enumerate(data.groups):
        yield from _group_rows(data, group, index, (errors, draws), known, confidence.source)
    for pair in data.pairs:
        gaps, gap_draws = errors[pair.first] - errors[pair.second], draws[pair.first] - draws[pair.second]
        yield from _gap_rows(data, pair, (gaps, gap_draws), known)
    matched = MatchedCalibration(data, values, options)
    yield from _miscalibration_rows(matched, confidence.source)
    yield from _miscalibration_gap_rows(matched)
    yield from _reliability_rows(data, values, matched.gap(data.pairs[0]))


def _calibrations(data: ConceptScores, values: Cells, parts: Iterable[Cells], draws: int) -> Array:
    """The three errors of every set and concept in every draw: `[n_sets, 3, n_concepts, n_draws]`."""
    errors = np.full((len(data.sets), len(KINDS), len(data.concepts), draws), np.nan, dtype=np.float32)
    known, start = ~np.isnan(values), 0
    for weights in parts:
        here = slice(start, start := start + weights.shape[1])

        def walk(column: int, weights: Array = weights, here: slice = here) -> None:
            for index, members in enumerate(data.sets):
                rows = np.flatnonzero(members & known[:, column])
                if len(rows):
                    cells, there = values[rows, column], data.present[rows, column]
                    calibrated = Calibrated(cells, there, rows=rows, width=len(values))
                    errors[index, :, column, here] = calibrated.errors(weights)

        each_concept(walk, len(data.concepts))
    return errors


def _group_rows(
    data: ConceptScores, group: str, index: int, numbers: tuple[Array, Array], known: Counts, source: str
) -> Iterator[Row]:
    errors, draws = numbers
    for column, concept in enumerate(data.concepts):
        n = int(known[index, column])
        for kind, metric in enumerate(KINDS):
            value = float(errors[index, kind, column])
            low, high = spread(draws[index, kind, column], value) if n >= FEWEST else NONE
            row = Row(f"disparity.{metric}", value, n, UNIT, group=group, concept=concept)
            yield row._replace(low=max(low, 0.0), high=high, note=_note(n, source))


def _gap_rows(data: ConceptScores, pair: Comparison, numbers: tuple[Array, Array], known: Counts) -> Iterator[Row]:
    """Gaps of the published errors; positive: worse calibrated for the first group."""
    gaps, draws = numbers
    for kind, metric in enumerate(KINDS):
        for column, concept in enumerate(data.concepts):
            sizes, value = known[pair.both, column], float(gaps[kind, column])
            low, high = spread(draws[kind, column], value) if sizes.min() >= FEWEST else NONE
            row = pair.row(f"{metric}_gap", value, int(sizes.sum()), UNIT, concept=concept, low=low, high=high)
            yield row._replace(note=_note(int(sizes.min()), None))


def _note(n: int, source: str | None) -> str | None:
    """What the confidence is, or why there is no value or no interval."""
    if not n:
        return "too few images to convert scores to probabilities"
    return join((source, f"fewer than {FEWEST} images: no interval" if n < FEWEST else None))


class MatchedCalibration:
    """Miscalibration of every set and concept at the concept's common prevalence, with the test of every gap."""

    def __init__(self, data: ConceptScores, values: Cells, options: MeasureOptions) -> None:
        self.data, self._values = data, values
        known = ~np.isnan(values)
        self._prevalence = prevalences(values, data.present)
        self.known = np.stack([known[members].sum(axis=0) for members in data.sets])
        self._showing = np.stack([(data.present & known)[members].sum(axis=0) for members in data.sets])
        tests = max(1, sum(int(self.enough(pair).sum()) for pair in data.pairs))
        self._level_of_all = 1 - ALPHA / tests
        self.measured, self._together = (self._measured(level) for level in (0.95, self._level_of_all))
        self.p_values, self.at_most = self._tests(options)
        self.adjusted = benjamini_hochberg(self.p_values.ravel()).reshape(self.p_values.shape)

    def enough(self, pair: Comparison) -> Mask:
        """Concepts that at least five images of both sets show and at least five do not."""
        showing, without = self._showing[pair.both], (self.known - self._showing)[pair.both]
        return np.asarray((np.minimum(showing, without) >= FEWEST).all(axis=0))

    def gap(self, pair: Comparison) -> Cells:
        """First less second, of every concept."""
        first, second = (np.array([each.value for each in self.measured[index]]) for index in pair.both)
        return np.asarray(first - second)

    def reach(self, pair: Comparison, column: int, *, together: bool = False) -> Reach:
        """How far the interval of a gap reaches; `together`: that of all gaps at once (Bonferroni's)."""
        measured = self._together if together else self.measured
        return difference_reach(*(measured[index][column].reach for index in pair.both))

    def _measured(self, level: float) -> list[list[Miscalibration]]:
        return [[self._one(members, column, level) for column in self._columns] for members in self.data.sets]

    @property
    def _columns(self) -> range:
        return range(len(self.data.concepts))

    def _one(self, members: Mask, column: int, level: float) -> Miscalibration:
        rows = np.flatnonzero(members & ~np.isnan(self._values[:, column]))
        cells, present, people = self._values[rows, column], self.data.present[rows, column], self.data.people[rows]
        return miscalibration(cells, present, people, prevalence=float(self._prevalence[column]), level=level)

    def _tests(self, options: MeasureOptions) -> tuple[Cells, Mask]:
        """p-values before correction, pairs × concepts; concepts with the smallest get more shuffles if need be."""
        rng, tested = options.rng(), np.stack([self.enough(pair) for pair in self.data.pairs])
        columns = np.flatnonzero(tested.any(axis=0))
        shuffles = self._shuffles(columns, rng, max(options.draws, shuffles_for(1, least=0)))
        p_values, at_most = self._compared(tested, shuffles)
        needed = shuffles_for(int(tested.sum()))
        rare = np.flatnonzero((p_values <= RARE / (1 + options.draws)).any(axis=0))
        if needed > options.draws and 0 < len(rare) < tested.sum() / (ALPHA * (1 + options.draws)):
            more = self._shuffles(rare, rng, needed - options.draws)
            shuffles |= {column: np.concatenate([shuffles[column], more[column][:, 1:]], axis=-1) for column in more}
            p_values, at_most = self._compared(tested, shuffles)
        return p_values, at_most

    def _compared(self, tested: Mask, shuffles: dict[int, Array]) -> tuple[Cells, Mask]:
        p_values, at_most = np.full(tested.shape, np.nan), np.zeros(tested.shape, dtype=bool)
        for index, column in np.argwhere(tested).tolist():
            observed, null = shuffles[column][index, 0], shuffles[column][index, 1:]
            p_values[index, column] = shuffle_p_value(float(observed), null)
            at_most[index, column] = is_floor(p_values[index, column], null)
        return p_values, at_most

    def _shuffles(self, columns: npt.NDArray[np.intp], rng: np.random.Generator, draws: int) -> dict[int, Array]:
        """The gap of every pair as it is and in every shuffle of the labels: pairs × (1 + shuffles), by column."""
        data = self.data
        made: dict[int, list[Array]] = {int(column): [] for column in columns}
        bins = {column: self._bins(column) for column in made}
        for _, keys in shuffle_keys(len(data.codes), rng, draws, data.people):

            def walk(place: int, keys: Keys = keys) -> None:
                column = int(columns[place])
                labels = shuffled_labels(data.codes, data.present[:, column], keys)
                if not made[column]:
                    labels = np.concatenate([data.codes[:, None].astype(labels.dtype), labels], axis=1)
                made[column].append(np.stack([self._gaps(bins[column], labels, pair) for pair in data.pairs]))

            each_concept(walk, len(columns))
        return {column: np.concatenate(parts, axis=1) for column, parts in made.items()}

    def _bins(self, column: int) -> tuple[MatchedBins, Mask]:
        known = ~np.isnan(self._values[:, column])
        cells, present = self._values[known, column], self.data.present[known, column]
        return MatchedBins(cells, present, float(self._prevalence[column])), known

    def _gaps(self, bins: tuple[MatchedBins, Mask], labels: npt.NDArray[np.uint8], pair: Comparison) -> Array:
        own = (labels[bins[1]] == pair.first).astype(np.float32)
        return np.asarray(bins[0].miscalibrations(own) - bins[0].miscalibrations(1 - own))


def _miscalibration_rows(matched: MatchedCalibration, source: str) -> Iterator[Row]:
    """Miscalibration of every concept and group; notes give its root, in points."""
    data = matched.data
    for index, group in enumerate(data.groups):
        for column, concept in enumerate(data.concepts):
            (value, reach), n = matched.measured[index][column], int(matched.known[index, column])
            row = Row("disparity.miscalibration", value, n, SQUARED, group=group, concept=concept)
            few = FEW_TO_MATCH if n and np.isnan(value) else None
            row = row._replace(note=join((_note(n, source), few, _root(value))))
            yield _within(row, reach) if n >= FEWEST else row


def _miscalibration_gap_rows(matched: MatchedCalibration) -> Iterator[Row]:
    """The gaps between groups, tested with shuffled labels, and with bounds that hold for all of them at once."""
    data = matched.data
    for index, pair in enumerate(data.pairs):
        gaps, enough = matched.gap(pair), matched.enough(pair)
        for column, concept in enumerate(data.concepts):
            sizes = matched.known[pair.both, column]
            roots = [_root(matched.measured[side][column].value) for side in pair.both]
            notes = [_note(int(sizes.min()), None), f"{roots[0]}; {roots[1]}" if all(roots) else None]
            row = pair.row("miscalibration_gap", float(gaps[column]), int(sizes.sum()), SQUARED, concept=concept)
            if not enough[column]:
                yield row._replace(note=join([*notes, FEW_TO_TEST if sizes.min() >= FEWEST else None]))
                continue
            row = _within(row, matched.reach(pair, column))._replace(note=join(notes))
            p_value, at_most = float(matched.adjusted[index, column]), bool(matched.at_most[index, column])
            yield row._replace(p_value=p_value, p_at_most=at_most)
            wide = _within(row, matched.reach(pair, column, together=True))
            note = "bounds hold for all concepts at once"
            yield wide._replace(metric="disparity.miscalibration_gap_simultaneous", note=note)


def _within(row: Row, reach: Reach) -> Row:
    value = np.nan if row.value is None else row.value
    return row._replace(low=value - reach.below, high=value + reach.above)


def _root(value: float) -> str | None:
    if np.isnan(value):
        return None
    return f"root {100 * np.sqrt(value):.1f} points" if value > 0 else "no more than chance"


def _reliability_rows(data: ConceptScores, values: Cells, off: Cells) -> Iterator[Row]:
    """The share that shows the concept by bin of confidence: all concepts together, then the widest gaps `off`."""
    yield from _diagram(data, values, np.arange(len(data.concepts)), None)
    for column in np.argsort(-np.nan_to_num(np.abs(off)), kind="stable")[:DRAWN].tolist():
        yield from _diagram(data, values, np.array([column]), data.concepts[column])


def _diagram(data: ConceptScores, values: Cells, columns: np.ndarray, concept: str | None) -> Iterator[Row]:
    """Bins of one diagram. With all concepts together, a bin can hold several cells of one image; its interval is then
    over images.
    """
    for index, group in enumerate(data.groups):
        rows, across = np.nonzero(data.sets[index][:, None] & ~np.isnan(values[:, columns]))
        cells, there = (table[rows, columns[across]] for table in (values, data.present))
        bins = equal_width_bins(cells)
        for each in reliability(cells, there):
            in_bin = bins == round(each.low * BINS)
            low, high = clustered_share_interval(there[in_bin], data.people[rows[in_bin]])
            row = Row("disparity.reliability", each.shows / each.n, each.n, PROBABILITY, group=group)
            counted = None if concept else f"n counts image × concept, of {len(np.unique(rows[in_bin]))} images"
            row = row._replace(subset=f"{each.low:.1f}–{each.high:.1f}", concept=concept, low=low, high=high)
            yield row._replace(expected=each.confidence, note=counted)
