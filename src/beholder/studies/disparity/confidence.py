"""Disparity's calibration: does a confidence mean the same for images of every group?

Measured only if scores are probabilities or were converted on request. Expected calibration error is the published
measure; miscalibration is the one to compare groups by, because it does not depend on their sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.calibration import BINS, Array, Calibrated, equal_width_bins, reliability
from beholder.metrics.intervals import Reach, clustered_share_interval, difference_reach
from beholder.metrics.miscalibration import Miscalibration, miscalibration
from beholder.metrics.precision_gaps import each_concept
from beholder.studies.disparity.gaps import NONE, spread
from beholder.studies.disparity.scores import Cells, Comparison, ConceptScores, Confidence, Mask
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions

UNIT, SQUARED = "calibration error", "squared calibration error"
Counts = npt.NDArray[np.int_]
KINDS = ("ece", "ece_adaptive", "brier")
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
    measured = [_miscalibrations(data, values, members) for members in data.sets]
    yield from _miscalibration_rows(data, measured, known, confidence.source)
    first, second = (np.array([each.value for each in measured[index]]) for index in data.pairs[0].both)
    yield from _reliability_rows(data, values, first - second)


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


def _miscalibration_rows(
    data: ConceptScores, measured: list[list[Miscalibration]], known: Counts, source: str
) -> Iterator[Row]:
    """Miscalibration of every concept and group, and the gaps between groups; notes give the roots, in points."""
    for index, group in enumerate(data.groups):
        for column, concept in enumerate(data.concepts):
            (value, reach), n = measured[index][column], int(known[index, column])
            row = Row("disparity.miscalibration", value, n, SQUARED, group=group, concept=concept)
            row = row._replace(note=join((_note(n, source), _root(value))))
            yield _within(row, reach) if n >= FEWEST else row
    for pair in data.pairs:
        for column, concept in enumerate(data.concepts):
            sides, sizes = [measured[index][column] for index in pair.both], known[pair.both, column]
            roots = [_root(side.value) for side in sides]
            note = join((_note(int(sizes.min()), None), f"{roots[0]}; {roots[1]}" if all(roots) else None))
            value, reach = sides[0].value - sides[1].value, difference_reach(*(side.reach for side in sides))
            row = pair.row("miscalibration_gap", value, int(sizes.sum()), SQUARED, concept=concept, note=note)
            yield _within(row, reach) if sizes.min() >= FEWEST else row


def _miscalibrations(data: ConceptScores, values: Cells, members: Mask) -> list[Miscalibration]:
    made = []
    for column in range(len(data.concepts)):
        rows = np.flatnonzero(members & ~np.isnan(values[:, column]))
        made.append(miscalibration(values[rows, column], data.present[rows, column], data.people[rows]))
    return made


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
