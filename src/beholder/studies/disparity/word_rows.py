"""Gaps and word vectors: is a concept recognised better for the group whose words are nearer to it in texts?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy import stats

from beholder.core.results import Row
from beholder.metrics.bootstrap import exact_proportion_interval
from beholder.studies.disparity.alignment import align
from beholder.studies.disparity.scores import Cells, Comparison, ConceptScores
from beholder.studies.rows import PROBABILITY, join

FEWEST_CONCEPTS = 10
"""No rank correlation is given for fewer concepts."""
GAPS = ("ap_gap", "ap_gap_matched", "ece_gap", "miscalibration_gap")
NORMAL = 1.959963984540054


def word_rows(data: ConceptScores, vectors: Path, gap_rows: Iterable[Row], *, every: bool) -> Iterator[Row]:
    """The alignment of every concept, and how well its sign and rank agree with those of the gaps.

    `every` counts all concepts with a gap, as the study does; otherwise only those with enough images to test.
    """
    words = data.dataset.group_words
    if words is None or set(words.groups) != set(data.groups):
        note = f"{data.dataset.name} has no words for {', '.join(data.groups)}"
        yield Row("disparity.word_alignment", None, 0, "cosine", note=note)
        return
    alignments = align(vectors, data.concepts, words)
    source = join([vectors.name, *alignments.notes])
    rows = list(gap_rows)
    for code, pair in enumerate(data.pairs):
        towards = [each.towards(data.groups[code]) for each in alignments.concepts]
        for each, value in zip(alignments.concepts, towards, strict=True):
            number = sum(map(len, words.words.values()))
            row = Row("disparity.word_alignment", value, number, "cosine", group=pair.group, against=pair.against)
            yield row._replace(concept=each.concept, note=each.note or f"as '{each.name}'")
        near = {each.concept: value for each, value in zip(alignments.concepts, towards, strict=True)}
        for gap in GAPS:
            for row in _agreement_rows(near, _gaps_of(rows, gap, pair, every=every), gap):
                yield row._replace(group=pair.group, against=pair.against, note=join((row.note, source)))


def _gaps_of(rows: list[Row], gap: str, pair: Comparison, *, every: bool) -> dict[str, float]:
    """The gaps by concept: all of them, or only those with enough images to test, because other signs are noise."""
    own = [
        row for row in rows if (row.group, row.against) == pair[:2] and row.value is not None and np.isfinite(row.value)
    ]
    tested = {
        row.concept
        for row in own
        if row.metric == "disparity.ap_gap" and row.p_value is not None and np.isfinite(row.p_value)
    }
    kept = [row for row in own if row.metric == f"disparity.{gap}" and (every or row.concept in tested)]
    return {str(row.concept): float(row.value or 0.0) for row in kept}


def _agreement_rows(near: dict[str, float | None], gaps: dict[str, float], gap: str) -> Iterator[Row]:
    shared = [(value, gaps[concept]) for concept, value in near.items() if value and gaps.get(concept)]
    n = len(shared)
    if not n:
        return
    same = sum((a > 0) == (b > 0) for a, b in shared)
    low, high = exact_proportion_interval(same, n)
    note = "concepts whose alignment and gap have the same sign; 0.5 by chance"
    row = Row("disparity.word_agreement", same / n, n, PROBABILITY, subset=gap, low=low, high=high)
    yield row._replace(p_value=float(stats.binomtest(same, n).pvalue), note=note)
    row = Row("disparity.word_correlation", None, n, "rank correlation", subset=gap)
    if n < FEWEST_CONCEPTS:
        yield row._replace(note=f"fewer than {FEWEST_CONCEPTS} concepts")
        return
    value, low, high, p_value = rank_correlation(*np.array(shared).T)
    yield row._replace(value=value, low=low, high=high, p_value=p_value, note="Spearman's, over concepts")


def rank_correlation(first: Cells, second: Cells) -> tuple[float, float, float, float]:
    """Spearman's coefficient with Bonett and Wright's interval and its p-value; NaN where one does not vary."""
    test = stats.spearmanr(first, second)
    value = float(test.statistic)
    error = np.sqrt((1 + value**2 / 2) / (len(first) - 3))
    centre = np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    low, high = np.tanh(centre - NORMAL * error), np.tanh(centre + NORMAL * error)
    return value, float(low), float(high), float(test.pvalue)
