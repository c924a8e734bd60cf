"""Disparity's calibration: does a confidence mean the same for images of every group?

Measured only if scores are probabilities or were converted on request. Expected calibration error is the published
measure; miscalibration is the one to compare groups by, because it depends neither on their sizes nor on how often they
show the concept.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from beholder.comparison.family import FEWEST, TOO_LITTLE, Comparison, comparison_at, judge, part_from_null
from beholder.core.results import Row
from beholder.core.types import Codes, Floating, Ints, Mask
from beholder.metrics import calibration
from beholder.metrics.average_precision import Keys, LabelShuffles, each_concept, prevalences
from beholder.metrics.calibration import MatchedBins, Miscalibration, miscalibration
from beholder.metrics.intervals import clustered_share_interval
from beholder.studies.disparity.gaps import NONE, spread
from beholder.studies.disparity.scores import Cells, ConceptScores, Confidence, Sides, fewest_people
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions

UNIT, SQUARED = "calibration error", "squared calibration error"
KINDS = ("ece", "ece_adaptive", "brier")
FEW_TO_MATCH = "fewer than two images with the concept or without it: prevalence cannot be matched"
FEW_TO_TEST = f"fewer than {FEWEST} people of one group with it or without it: not tested"
TOGETHER = "bounds hold for all concepts at once"
DRAWN = 5  # how many concepts get a reliability diagram: those with the widest gaps


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
    yield from _error_rows(data, errors, draws, known, confidence.source)
    matched = MatchedCalibration(data, values, options)
    yield from _miscalibration_rows(matched, confidence.source)
    yield from _miscalibration_gap_rows(matched)
    yield from _diagram(data, values, np.arange(len(data.concepts)), None)
    off = np.nan_to_num(np.abs(matched.gap(data.pairs[0])))
    for column in np.argsort(-off, kind="stable")[:DRAWN].tolist():
        yield from _diagram(data, values, np.array([column]), data.concepts[column])


def _calibrations(data: ConceptScores, values: Cells, parts: Iterable[Cells], draws: int) -> Floating:
    """The three errors of every set and concept in every draw: `[n_sets, 3, n_concepts, n_draws]`."""
    errors = np.full((len(data.sets), len(KINDS), len(data.concepts), draws), np.nan, dtype=np.float32)
    known, start = ~np.isnan(values), 0
    for weights in parts:
        here = slice(start, start := start + weights.shape[1])

        def walk(column: int, weights: Floating = weights, here: slice = here) -> None:
            for index, members in enumerate(data.sets):
                rows = np.flatnonzero(members & known[:, column])
                if len(rows):
                    cells, there = values[rows, column], data.present[rows, column]
                    calibrated = calibration.Calibrated(cells, there, rows=rows, width=len(values))
                    errors[index, :, column, here] = calibrated.errors(weights)

        each_concept(walk, len(data.concepts))
    return errors


def _error_rows(data: ConceptScores, errors: Floating, draws: Floating, known: Ints, source: str) -> Iterator[Row]:
    """The published errors of every group, and their gaps; positive: worse calibrated for the first group."""
    for index, group in enumerate(data.groups.names):
        for column, concept in enumerate(data.concepts):
            n = int(known[index, column])
            for kind, metric in enumerate(KINDS):
                value = float(errors[index, kind, column])
                low, high = spread(draws[index, kind, column], value) if n >= FEWEST else NONE
                row = Row(f"disparity.{metric}", value, n, UNIT, group=group, concept=concept)
                yield row._replace(low=max(low, 0.0), high=high, note=_note(n, source))
    for pair in data.pairs:
        for kind, metric in enumerate(KINDS):
            for column, concept in enumerate(data.concepts):
                sizes, value = known[pair.both, column], float((errors[pair.first] - errors[pair.second])[kind, column])
                row = pair.row(f"{metric}_gap", value, int(sizes.sum()), UNIT, concept=concept)
                yield row._replace(note=_note(int(sizes.min()), None))


def _note(n: int, source: str | None) -> str | None:
    """What the confidence is, or why there is no value or no interval."""
    if not n:
        return "too few images to convert scores to probabilities"
    return join((source, f"fewer than {FEWEST} images: no interval" if n < FEWEST else None))


class MatchedCalibration:
    """Miscalibration of every set and concept at the concept's common prevalence, with the test of every gap."""

    def __init__(self, data: ConceptScores, values: Cells, options: MeasureOptions) -> None:
        self.data, self._values, known = data, values, ~np.isnan(values)
        self._prevalence = prevalences(values, data.present)
        self.known = np.stack([known[members].sum(axis=0) for members in data.sets])
        self.measured = [[self._one(members, column) for column in range(known.shape[1])] for members in data.sets]
        self._fewest = fewest_people(data, known)
        self.judged = self._judged(options)

    def gap(self, pair: Sides) -> Cells:
        """First less second, of every concept."""
        first, second = (np.array([each.value for each in self.measured[index]]) for index in pair.both)
        return np.asarray(first - second)

    def _one(self, members: Mask, column: int) -> Miscalibration:
        rows = np.flatnonzero(members & ~np.isnan(self._values[:, column]))
        cells, present = self._values[rows, column], self.data.present[rows, column]
        who = self.data.people.codes[rows]
        return miscalibration(cells, present, who, prevalence=float(self._prevalence[column]))

    def _judged(self, options: MeasureOptions) -> dict[tuple[int, int], Comparison]:
        """By pair and concept: all tested gaps are one family."""
        tested = [(int(index), int(column)) for index, column in np.argwhere(self._fewest >= FEWEST)]
        if not tested:
            return {}
        shuffles = self._shuffles(np.unique([column for _, column in tested]), options)
        moved = np.stack([shuffles[column][index] for index, column in tested], axis=1)
        people = np.array([self._fewest[place] for place in tested])
        (judged,) = judge([part_from_null(moved[0], moved[1:], people=people)])
        pairs = [self.data.pairs[index] for index, _ in tested]
        return {
            place: comparison_at(judged, number, pair.group, pair.against)
            for number, (place, pair) in enumerate(zip(tested, pairs, strict=True))
        }

    def _shuffles(self, columns: Codes, options: MeasureOptions) -> dict[int, Floating]:
        """The gap of every pair as it is and when people change groups: pairs × (1 + shuffles), by column."""
        data = self.data
        moves = LabelShuffles(data.codes, data.people.codes, data.cells)
        made: dict[int, list[Floating]] = {int(column): [] for column in columns}
        bins = {column: self._bins(column) for column in made}
        for _, keys in moves.keys(options.rng(), options.shuffles):

            def walk(place: int, keys: Keys = keys) -> None:
                column = int(columns[place])
                labels = moves.labels(data.present[:, column], bins[column][1], keys)
                if not made[column]:
                    labels = np.concatenate([data.codes[:, None].astype(labels.dtype), labels], axis=1)
                matched, known = bins[column]
                first = [(labels[known] == pair.first).astype(np.float32) for pair in data.pairs]
                gaps = [matched.miscalibrations(own) - matched.miscalibrations(1 - own) for own in first]
                made[column].append(np.stack(gaps))

            each_concept(walk, len(columns))
        return {column: np.concatenate(parts, axis=1) for column, parts in made.items()}

    def _bins(self, column: int) -> tuple[MatchedBins, Mask]:
        known = ~np.isnan(self._values[:, column])
        cells, present = self._values[known, column], self.data.present[known, column]
        return MatchedBins(cells, present, float(self._prevalence[column])), known


def _miscalibration_rows(matched: MatchedCalibration, source: str) -> Iterator[Row]:
    """Miscalibration of every concept and group; notes give its root, in points."""
    data = matched.data
    for index, group in enumerate(data.groups.names):
        for column, concept in enumerate(data.concepts):
            (value, reach), n = matched.measured[index][column], int(matched.known[index, column])
            row = Row("disparity.miscalibration", value, n, SQUARED, group=group, concept=concept)
            few = FEW_TO_MATCH if n and np.isnan(value) else None
            row = row._replace(note=join((_note(n, source), few, _root(value))))
            yield row._replace(low=value - reach.below, high=value + reach.above) if n >= FEWEST else row


def _miscalibration_gap_rows(matched: MatchedCalibration) -> Iterator[Row]:
    """The gaps between groups, tested with shuffled labels, with bounds that hold for all of them at once."""
    data = matched.data
    for index, pair in enumerate(data.pairs):
        gaps = matched.gap(pair)
        for column, concept in enumerate(data.concepts):
            sizes, value = matched.known[pair.both, column], float(gaps[column])
            roots = [_root(matched.measured[side][column].value) for side in pair.both]
            notes = [_note(int(sizes.min()), None), f"{roots[0]}; {roots[1]}" if all(roots) else None]
            row = pair.row("miscalibration_gap", value, int(sizes.sum()), SQUARED, concept=concept)
            comparison = matched.judged.get((index, column))
            if comparison is None:
                verdict, few = (None, None) if np.isnan(value) else (TOO_LITTLE, FEW_TO_TEST)
                yield row._replace(note=join([*notes, few if sizes.min() >= FEWEST else None]), verdict=verdict)
                continue
            judged = comparison.rows(row._replace(note=join([*notes, TOGETHER])), data.strata)
            yield from (*judged, judged[0]._replace(metric="disparity.miscalibration_gap_simultaneous"))


def _root(value: float) -> str | None:
    if np.isnan(value):
        return None
    return f"root {100 * np.sqrt(value):.1f} points" if value > 0 else "no more than chance"


def _diagram(data: ConceptScores, values: Cells, columns: np.ndarray, concept: str | None) -> Iterator[Row]:
    """The share that shows the concept by bin of confidence. A bin can hold several cells of one image."""
    for index, group in enumerate(data.groups.names):
        rows, across = np.nonzero(data.sets[index][:, None] & ~np.isnan(values[:, columns]))
        cells, there = (table[rows, columns[across]] for table in (values, data.present))
        bins = calibration.equal_width_bins(cells)
        for each in calibration.reliability(cells, there):
            in_bin = bins == round(each.low * calibration.BINS)
            low, high = clustered_share_interval(there[in_bin], data.people.codes[rows[in_bin]])
            row = Row("disparity.reliability", each.shows / each.n, each.n, PROBABILITY, group=group)
            counted = None if concept else f"n counts image × concept, of {len(np.unique(rows[in_bin]))} images"
            row = row._replace(subset=f"{each.low:.1f}–{each.high:.1f}", concept=concept, low=low, high=high)
            yield row._replace(expected=each.confidence, note=counted)
