"""Disparity's calibration: does a confidence mean the same for pictures of every group?

Only where scores are probabilities, or were read as such on request. Expected calibration error is the published
measure; what to compare groups by is miscalibration, which does not follow their sizes.
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
from beholder.studies.disparity.scores import Cells, Confidence, Mask, Pair, Seen
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions

UNIT, SQUARED = "calibration error", "squared calibration error"
Counts = npt.NDArray[np.int_]
KINDS = ("ece", "ece_adaptive", "brier")
DRAWN = 5
"""Concepts whose reliability diagram is kept: those with the widest gaps."""


def calibration_rows(seen: Seen, confidence: Confidence, options: MeasureOptions) -> Iterator[Row]:
    """Calibration error and Brier score by concept and group, their gaps, and reliability diagrams."""
    if confidence.values is None:
        yield Row("disparity.ece", None, 0, UNIT, note=confidence.reading)
        return
    values = confidence.values
    found = _calibrations(seen, values, [np.ones((len(values), 1))], 1)[..., 0]
    parts = (np.ascontiguousarray(part.T) for part in seen.resampler(options).weights())
    draws = _calibrations(seen, values, parts, options.draws)
    known = np.stack([(~np.isnan(values[members])).sum(axis=0) for members in seen.sets])
    for place, group in enumerate(seen.groups):
        yield from _group_rows(seen, group, place, (found, draws), known, confidence.reading)
    for pair in seen.pairs:
        gaps, gap_draws = found[pair.first] - found[pair.second], draws[pair.first] - draws[pair.second]
        yield from _gap_rows(seen, pair, (gaps, gap_draws), known)
    measured = [_miscalibrations(seen, values, members) for members in seen.sets]
    yield from _miscalibration_rows(seen, measured, known, confidence.reading)
    first, second = (np.array([each.value for each in measured[place]]) for place in seen.pairs[0][1:])
    yield from _reliability_rows(seen, values, first - second)


def _calibrations(seen: Seen, values: Cells, parts: Iterable[Cells], draws: int) -> Array:
    """All three kinds of every set and concept in every draw: `[n_sets, 3, n_concepts, n_draws]`."""
    found = np.full((len(seen.sets), len(KINDS), len(seen.concepts), draws), np.nan, dtype=np.float32)
    known, start = ~np.isnan(values), 0
    for weights in parts:
        here = slice(start, start := start + weights.shape[1])

        def walk(column: int, weights: Array = weights, here: slice = here) -> None:
            for place, members in enumerate(seen.sets):
                rows = np.flatnonzero(members & known[:, column])
                if len(rows):
                    cells, there = values[rows, column], seen.present[rows, column]
                    mine = Calibrated(cells, there, rows=rows, width=len(values)).errors(weights)
                    found[place, :, column, here] = mine

        each_concept(walk, len(seen.concepts))
    return found


def _group_rows(
    seen: Seen, group: str, place: int, numbers: tuple[Array, Array], known: Counts, reading: str
) -> Iterator[Row]:
    found, draws = numbers
    for column, concept in enumerate(seen.concepts):
        n = int(known[place, column])
        for kind, metric in enumerate(KINDS):
            value = float(found[place, kind, column])
            low, high = spread(draws[place, kind, column], value) if n >= FEWEST else NONE
            row = Row(f"disparity.{metric}", value, n, UNIT, group=group, concept=concept)
            yield row._replace(low=max(low, 0.0), high=high, note=_note(n, reading))


def _gap_rows(seen: Seen, pair: Pair, numbers: tuple[Array, Array], known: Counts) -> Iterator[Row]:
    """Positive: worse calibrated for the first."""
    gaps, draws = numbers
    for kind, metric in enumerate(KINDS):
        for column, concept in enumerate(seen.concepts):
            sizes, value = known[[pair.first, pair.second], column], float(gaps[kind, column])
            enough = sizes.min() >= FEWEST
            low, high = spread(draws[kind, column], value) if enough else NONE
            row = Row(f"disparity.{metric}_gap", value, int(sizes.sum()), UNIT, group=pair.name)
            yield row._replace(concept=concept, low=low, high=high, note=_note(int(sizes.min()), None))


def _note(n: int, reading: str | None) -> str | None:
    """What the scores were read as, or why there is no number or no interval."""
    if not n:
        return "too few images to read scores as probabilities"
    return join((reading, f"fewer than {FEWEST} images: no interval" if n < FEWEST else None))


# Miscalibration


def _miscalibration_rows(seen: Seen, found: list[list[Miscalibration]], known: Counts, reading: str) -> Iterator[Row]:
    """Of every concept and group, and the gaps between groups; roots, in points, are in the notes."""
    for place, group in enumerate(seen.groups):
        for column, concept in enumerate(seen.concepts):
            (value, reach), n = found[place][column], int(known[place, column])
            row = Row("disparity.miscalibration", value, n, SQUARED, group=group, concept=concept)
            row = row._replace(note=join((_note(n, reading), _root(value))))
            yield _within(row, reach) if n >= FEWEST else row
    for pair in seen.pairs:
        for column, concept in enumerate(seen.concepts):
            sides = [found[place][column] for place in (pair.first, pair.second)]
            sizes = known[[pair.first, pair.second], column]
            value = sides[0].value - sides[1].value
            row = Row("disparity.miscalibration_gap", value, int(sizes.sum()), SQUARED, group=pair.name)
            roots = [_root(side.value) for side in sides]
            said = f"{roots[0]}; {roots[1]}" if all(roots) else None
            row = row._replace(concept=concept, note=join((_note(int(sizes.min()), None), said)))
            reach = difference_reach(*(side.reach for side in sides))
            yield _within(row, reach) if sizes.min() >= FEWEST else row


def _miscalibrations(seen: Seen, values: Cells, members: Mask) -> list[Miscalibration]:
    made = []
    for column in range(len(seen.concepts)):
        rows = np.flatnonzero(members & ~np.isnan(values[:, column]))
        made.append(miscalibration(values[rows, column], seen.present[rows, column], seen.people[rows]))
    return made


def _within(row: Row, reach: Reach) -> Row:
    value = np.nan if row.value is None else row.value
    return row._replace(low=value - reach.below, high=value + reach.above)


def _root(value: float) -> str | None:
    if np.isnan(value):
        return None
    return f"root {100 * np.sqrt(value):.1f} points" if value > 0 else "no more than chance"


# Reliability


def _reliability_rows(seen: Seen, values: Cells, off: Cells) -> Iterator[Row]:
    """Bins of confidence against what is there: all concepts together, then those with the widest gaps `off`."""
    yield from _diagram(seen, values, np.arange(len(seen.concepts)), None)
    for column in np.argsort(-np.nan_to_num(np.abs(off)), kind="stable")[:DRAWN].tolist():
        yield from _diagram(seen, values, np.array([column]), seen.concepts[column])


def _diagram(seen: Seen, values: Cells, columns: np.ndarray, concept: str | None) -> Iterator[Row]:
    """Of all concepts together a bin holds cells, several of one image: images are what its interval is over."""
    for place, group in enumerate(seen.groups):
        rows, across = np.nonzero(seen.sets[place][:, None] & ~np.isnan(values[:, columns]))
        cells, there = (table[rows, columns[across]] for table in (values, seen.present))
        bins = equal_width_bins(cells)
        for each in reliability(cells, there):
            mine = bins == round(each.low * BINS)
            low, high = clustered_share_interval(there[mine], seen.people[rows[mine]])
            row = Row("disparity.reliability", each.shows / each.n, each.n, PROBABILITY, group=group)
            counted = None if concept else f"n counts image × concept, of {len(np.unique(rows[mine]))} images"
            note = join((f"mean confidence {each.confidence:.4f}", counted))
            bounds = f"{each.low:.1f}–{each.high:.1f}"
            yield row._replace(subset=bounds, concept=concept, low=low, high=high, note=note)
