"""Alignment: how near a concept is to the words of each group, measured with word vectors, and whether gaps agree.

The alignment of a concept with a group is its mean cosine with the group's words, less the mean over the other groups.
The vector of several words is the mean of their unit vectors. A concept without a vector has no alignment, and a note
says why. Alignments are facts about the texts on which the vectors were trained, not about people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.datasets.group_words import GroupWords
from beholder.metrics.bootstrap import exact_proportion_interval
from beholder.studies.disparity.prompts import concept_name
from beholder.studies.disparity.scores import Cells, Comparison, ConceptScores
from beholder.studies.disparity.vectors import Vector, WordVectors, read_vectors
from beholder.studies.rows import PROBABILITY, join

FEWEST_CONCEPTS = 10
"""No rank correlation is given for fewer concepts."""
GAPS = ("ap_gap", "ap_gap_matched", "ece_gap", "miscalibration_gap")
NORMAL = 1.959963984540054


class Alignment(NamedTuple):
    """One concept and its nearness to every group's words."""

    concept: str
    name: str
    """The words that were looked up."""
    cosines: Mapping[str, float] | None
    """Mean cosine with each group's words; None if a word has no vector."""
    note: str | None = None
    """Why there are no cosines."""

    def towards(self, group: str) -> float | None:
        """Mean cosine with a group's words less that with the other groups'; positive: nearer to this group."""
        if self.cosines is None:
            return None
        others = [cosine for name, cosine in self.cosines.items() if name != group]
        return self.cosines[group] - sum(others) / len(others)


class Alignments(NamedTuple):
    """All concepts, and notes on the groups' words."""

    concepts: list[Alignment]
    notes: list[str]


def align(path: Path, concepts: Sequence[str], groups: GroupWords) -> Alignments:
    """Read the vectors that concepts and groups need, and compare them."""
    names = {concept: concept_name(concept) for concept in concepts}
    terms = {group: [concept_name(word) for word in words] for group, words in groups.words.items()}
    texts = [*names.values(), *(term for words in terms.values() for term in words)]
    vectors = read_vectors(path, {word for text in texts for word in text.split()})
    return align_concepts(vectors, names, terms)


def align_concepts(vectors: WordVectors, names: Mapping[str, str], terms: Mapping[str, Sequence[str]]) -> Alignments:
    """Every concept's mean cosine with every group's terms."""
    groups: dict[str, Vector] = {}
    notes = []
    for group, words in terms.items():
        known = [vector for word in words if (vector := text_vector(vectors, word)) is not None]
        if not known:
            raise DataError(
                f"{vectors.source} has none of the words for {group} ({', '.join(words)}): no concept can be aligned."
            )
        if missing := [word for word in words if text_vector(vectors, word) is None]:
            notes.append(f"{vectors.source} lacks {', '.join(missing)}: {group} has {len(known)} words")
        groups[group] = np.stack(known)
    return Alignments([_alignment(vectors, concept, name, groups) for concept, name in names.items()], notes)


def text_vector(vectors: WordVectors, text: str) -> Vector | None:
    """The mean of its words' vectors, at length 1; None if a word has no vector or they cancel out."""
    words = text.split()
    if not words or not all(word in vectors for word in words):
        return None
    mean = np.mean([vectors[word] for word in words], axis=0)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length) if length else None


def _alignment(vectors: WordVectors, concept: str, name: str, groups: Mapping[str, Vector]) -> Alignment:
    vector = text_vector(vectors, name)
    if vector is None:
        missing = ", ".join(word for word in name.split() if word not in vectors) or f"'{name}'"
        return Alignment(concept, name, None, f"{vectors.source} has no vector for {missing}")
    return Alignment(concept, name, {group: float((terms @ vector).mean()) for group, terms in groups.items()})


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
            note = each.note or f"as '{each.name}'"
            yield pair.row("word_alignment", value, number, "cosine", concept=each.concept, note=note)
        near = {each.concept: value for each, value in zip(alignments.concepts, towards, strict=True)}
        for gap in GAPS:
            for row in _agreement_rows(near, _gaps_of(rows, gap, pair, every=every), gap):
                yield row._replace(group=pair.group, against=pair.against, note=join((row.note, source)))


def _gaps_of(rows: list[Row], gap: str, pair: Comparison, *, every: bool) -> dict[str, float]:
    """The gaps by concept: all of them, or only those with enough images to test, because other signs are noise."""
    own = [row for row in rows if (row.group, row.against) == pair[:2] and _known(row.value)]
    tested = {row.concept for row in own if row.metric == "disparity.ap_gap" and _known(row.p_value)}
    kept = [row for row in own if row.metric == f"disparity.{gap}" and (every or row.concept in tested)]
    return {str(row.concept): float(row.value or 0.0) for row in kept}


def _known(number: float | None) -> bool:
    return number is not None and bool(np.isfinite(number))


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
