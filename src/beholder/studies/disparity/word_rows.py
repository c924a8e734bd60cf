"""Disparity beside word vectors: does a model work better where texts put the concept nearer to a group's words?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy import stats

from beholder.core.results import Row
from beholder.metrics.bootstrap import exact_proportion_interval
from beholder.studies.disparity.alignment import align
from beholder.studies.disparity.scores import Cells, Seen
from beholder.studies.rows import PROBABILITY, join

FEWEST_CONCEPTS = 10
"""Concepts below which no rank correlation is given."""
GAPS = ("ap_gap", "ap_gap_matched", "ece_gap", "miscalibration_gap")
NORMAL = 1.959963984540054


def word_rows(seen: Seen, vectors: Path, gap_rows: Iterable[Row], *, every: bool) -> Iterator[Row]:
    """Alignment of every concept, and how far its sign and its rank agree with those of the gaps.

    `every` counts all concepts that have a gap, as the study does; else those that enough images show to test it.
    """
    words = seen.dataset.group_words
    if words is None or set(words.groups) != set(seen.groups):
        note = f"{seen.dataset.name} names no words for {', '.join(seen.groups)}"
        yield Row("disparity.word_alignment", None, 0, "cosine", note=note)
        return
    found = align(vectors, seen.concepts, words)
    said = join([vectors.name, *found.notes])
    rows = list(gap_rows)
    for code, pair in enumerate(seen.pairs):
        towards = [each.towards(seen.groups[code]) for each in found.concepts]
        for each, value in zip(found.concepts, towards, strict=True):
            number = sum(map(len, words.words.values()))
            row = Row("disparity.word_alignment", value, number, "cosine", group=pair.name)
            yield row._replace(concept=each.concept, note=each.note or f"as '{each.name}'")
        near = {each.concept: value for each, value in zip(found.concepts, towards, strict=True)}
        for gap in GAPS:
            for row in _agreement_rows(near, _gaps_of(rows, gap, pair.name, every=every), gap, pair.name):
                yield row._replace(note=join((row.note, said)))


def _gaps_of(rows: list[Row], gap: str, pair: str, *, every: bool) -> dict[str, float]:
    """The gaps of the concepts that enough images show to test them: the others' signs are noise; or of all."""
    mine = [row for row in rows if row.group == pair and row.value is not None and np.isfinite(row.value)]
    tested = {
        row.concept
        for row in mine
        if row.metric == "disparity.ap_gap" and row.p_value is not None and np.isfinite(row.p_value)
    }
    found = [row for row in mine if row.metric == f"disparity.{gap}" and (every or row.concept in tested)]
    return {str(row.concept): float(row.value or 0.0) for row in found}


def _agreement_rows(near: dict[str, float | None], gaps: dict[str, float], gap: str, pair: str) -> Iterator[Row]:
    shared = [(value, gaps[concept]) for concept, value in near.items() if value and gaps.get(concept)]
    n = len(shared)
    if not n:
        return
    same = sum((a > 0) == (b > 0) for a, b in shared)
    low, high = exact_proportion_interval(same, n)
    note = "concepts whose alignment and gap have one sign; 0.5 by chance"
    row = Row("disparity.word_agreement", same / n, n, PROBABILITY, subset=gap, group=pair, low=low, high=high)
    yield row._replace(p_value=float(stats.binomtest(same, n).pvalue), note=note)
    row = Row("disparity.word_correlation", None, n, "rank correlation", subset=gap, group=pair)
    if n < FEWEST_CONCEPTS:
        yield row._replace(note=f"fewer than {FEWEST_CONCEPTS} concepts")
        return
    value, low, high, p_value = rank_correlation(*np.array(shared).T)
    yield row._replace(value=value, low=low, high=high, p_value=p_value, note="Spearman's, over concepts")


def rank_correlation(first: Cells, second: Cells) -> tuple[float, float, float, float]:
    """Spearman's coefficient with Bonett and Wright's interval and its p-value; NaN where one does not vary."""
    found = stats.spearmanr(first, second)
    value = float(found.statistic)
    error = np.sqrt((1 + value**2 / 2) / (len(first) - 3))
    centre = np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    low, high = np.tanh(centre - NORMAL * error), np.tanh(centre + NORMAL * error)
    return value, float(low), float(high), float(found.pvalue)
