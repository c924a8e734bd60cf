"""Disparity's calibration: does a confidence mean the same for pictures of every group?

Only where scores are probabilities, or were read as such on request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from beholder.benchmarks.benchmark import MeasureOptions
from beholder.benchmarks.disparity_scores import Cells, Confidence, Seen
from beholder.benchmarks.rows import PROBABILITY
from beholder.metrics.bootstrap import FEWEST, centred_interval, exact_proportion_interval
from beholder.metrics.calibration import Array, Calibrated, reliability
from beholder.metrics.precision_gaps import each_concept
from beholder.results import Row

UNIT = "calibration error"
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
    for place, group in enumerate(seen.groups):
        yield from _group_rows(seen, group, place, (found, draws), confidence)
    for pair in seen.pairs:
        gaps, gap_draws = found[pair.first] - found[pair.second], draws[pair.first] - draws[pair.second]
        yield from _gap_rows(seen, pair.name, (gaps, gap_draws))
    yield from _reliability_rows(seen, values, found)


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
    seen: Seen, group: str, place: int, numbers: tuple[Array, Array], confidence: Confidence
) -> Iterator[Row]:
    found, draws = numbers
    for column, concept in enumerate(seen.concepts):
        n = int((~np.isnan(confidence.values[seen.sets[place], column])).sum())  # type: ignore[index]
        for kind, metric in enumerate(KINDS):
            value = float(found[place, kind, column])
            low, high = centred_interval(draws[place, kind, column], value) if n >= FEWEST else (None, None)
            row = Row(f"disparity.{metric}", value, n, UNIT, group=group, concept=concept)
            note = confidence.reading if n else "too few images to read scores as probabilities"
            yield row._replace(low=None if low is None else max(low, 0.0), high=high, note=note)


def _gap_rows(seen: Seen, name: str, numbers: tuple[Array, Array]) -> Iterator[Row]:
    """Positive: worse calibrated for the first."""
    gaps, draws = numbers
    n = len(seen.images)
    for kind, metric in enumerate(KINDS):
        for column, concept in enumerate(seen.concepts):
            value = float(gaps[kind, column])
            low, high = centred_interval(draws[kind, column], value)
            row = Row(f"disparity.{metric}_gap", value, n, UNIT, group=name, concept=concept)
            yield row._replace(low=low, high=high)


def _reliability_rows(seen: Seen, values: Cells, found: Array) -> Iterator[Row]:
    """Bins of confidence against what is there: all concepts together, then those with the widest gaps."""
    yield from _diagram(seen, values, np.arange(len(seen.concepts)), None)
    first = seen.pairs[0]
    widest = np.argsort(-np.nan_to_num(np.abs(found[first.first, 0] - found[first.second, 0])))[:DRAWN]
    for column in widest.tolist():
        yield from _diagram(seen, values, np.array([column]), seen.concepts[column])


def _diagram(seen: Seen, values: Cells, columns: np.ndarray, concept: str | None) -> Iterator[Row]:
    for place, group in enumerate(seen.groups):
        cells, there = (table[np.ix_(seen.sets[place], columns)] for table in (values, seen.present))
        known = ~np.isnan(cells)
        for each in reliability(cells[known], there[known]) if known.any() else []:
            low, high = exact_proportion_interval(each.shows, each.n)
            row = Row("disparity.reliability", each.shows / each.n, each.n, PROBABILITY, group=group)
            note = f"mean confidence {each.confidence:.4f}"
            bounds = f"{each.low:.1f}–{each.high:.1f}"
            yield row._replace(subset=bounds, concept=concept, low=low, high=high, note=note)
