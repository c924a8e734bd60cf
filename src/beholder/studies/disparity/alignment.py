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
from beholder.metrics.multiplicity import holm
from beholder.metrics.precision_gaps import is_floor, shuffle_p_value
from beholder.studies.disparity.concepts import AMBIGUOUS, Words, concept_name
from beholder.studies.disparity.gaps import Gaps
from beholder.studies.disparity.scores import Cells, Comparison
from beholder.studies.disparity.vectors import Vector, WordVectors, read_vectors
from beholder.studies.rows import PROBABILITY, join

FEWEST_CONCEPTS = 10
"""No rank correlation is given for fewer concepts."""
ERRORS = ("ece_gap", "miscalibration_gap")
GAPS = ("ap_gap", "ap_gap_matched", *ERRORS)
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


def align(path: Path, concepts: Sequence[str], groups: GroupWords, ambiguous: Words = AMBIGUOUS) -> Alignments:
    """Read the vectors that concepts and groups need, and compare them."""
    names = {concept: concept_name(concept, ambiguous) for concept in concepts}
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


def word_rows(
    gaps: Gaps, gap_rows: Iterable[Row], vectors: Path, ambiguous: Words = AMBIGUOUS, *, every: bool
) -> Iterator[Row]:
    """The alignment of every concept, and how well its sign and rank agree with those of the gaps.

    `every` counts all concepts with a gap, as the study does; otherwise only those with enough images to test.
    """
    data = gaps.data
    words = data.dataset.group_words
    if words is None or set(words.groups) != set(data.groups):
        note = f"{data.dataset.name} has no words for {', '.join(data.groups)}"
        yield Row("disparity.word_alignment", None, 0, "cosine", note=note)
        return
    alignments = align(vectors, data.concepts, words, ambiguous)
    source = join([vectors.name, *alignments.notes])
    rows, made = list(gap_rows), []
    for code, pair in enumerate(data.pairs):
        towards = [each.towards(data.groups[code]) for each in alignments.concepts]
        for each, value in zip(alignments.concepts, towards, strict=True):
            number = sum(map(len, words.words.values()))
            note = each.note or f"as '{each.name}'"
            yield pair.row("word_alignment", value, number, "cosine", concept=each.concept, note=note)
        near = {each.concept: value for each, value in zip(alignments.concepts, towards, strict=True)}
        for gap in GAPS:
            found = _gaps_of(rows, gap, pair, every=every)
            kept = [concept for concept in data.concepts if near[concept] and found.get(concept)]
            towards_first, values = (np.array([table[concept] for concept in kept]) for table in (near, found))
            shuffles = _shuffles_of(gaps, gap, pair, kept)
            for row in agreement_rows(towards_first, values, shuffles, gap):
                made.append(row._replace(group=pair.group, against=pair.against, note=join((row.note, source))))
    yield from corrected_over_pairs(made)


def corrected_over_pairs(rows: list[Row]) -> Iterator[Row]:
    """p-values after Holm's correction over pairs of groups, metric by metric."""
    for key in dict.fromkeys((row.metric, row.subset) for row in rows):
        family = [row for row in rows if (row.metric, row.subset) == key]
        p_values = holm(np.array([np.nan if row.p_value is None else row.p_value for row in family]))
        yield from (row._replace(p_value=float(p)) for row, p in zip(family, p_values, strict=True))


def _shuffles_of(gaps: Gaps, gap: str, pair: Comparison, concepts: list[str]) -> Cells | None:
    """The gaps of these concepts with shuffled labels; only gaps of average precision have them."""
    if gap not in ("ap_gap", "ap_gap_matched"):
        return None
    columns = [gaps.data.concepts.index(concept) for concept in concepts]
    return gaps.shuffles(pair, matched=gap == "ap_gap_matched")[columns]


def _gaps_of(rows: list[Row], gap: str, pair: Comparison, *, every: bool) -> dict[str, float]:
    """The gaps by concept: all of them, or only those with enough images to test, because other signs are noise.

    Positive is better for the first group: a smaller error counts like a higher precision.
    """
    own = [row for row in rows if (row.group, row.against) == pair[:2] and _known(row.value)]
    tested = {row.concept for row in own if row.metric == "disparity.ap_gap" and _known(row.p_value)}
    kept = [row for row in own if row.metric == f"disparity.{gap}" and (every or row.concept in tested)]
    sign = -1.0 if gap in ERRORS else 1.0
    return {str(row.concept): sign * float(row.value or 0.0) for row in kept}


def _known(number: float | None) -> bool:
    return number is not None and bool(np.isfinite(number))


def agreement_rows(near: Cells, gaps: Cells, shuffles: Cells | None, gap: str) -> Iterator[Row]:
    """The share of concepts whose gap has the sign of their alignment, and the rank correlation of both.

    Gaps of all concepts move together, because images show several. So neither is tested as if concepts were
    independent, but with shuffled labels of the images; `expected` is their mean.
    """
    n = len(near)
    if not n:
        return
    same = int(((near > 0) == (gaps > 0)).sum())
    low, high = exact_proportion_interval(same, n)
    better = "a smaller error counts as better; " if gap in ERRORS else ""
    note = f"concepts that are better for the group whose words are nearer; {better}0.5 by chance"
    row = Row("disparity.word_agreement", same / n, n, PROBABILITY, subset=gap, low=low, high=high, note=note)
    null = None if shuffles is None else ((near[:, None] > 0) == (shuffles > 0)).mean(axis=0)
    yield _tested(row, null)
    row = Row("disparity.word_correlation", None, n, "rank correlation", subset=gap)
    if n < FEWEST_CONCEPTS:
        yield row._replace(note=f"fewer than {FEWEST_CONCEPTS} concepts")
        return
    value, low, high, _ = rank_correlation(near, gaps)
    null = None if shuffles is None else _correlations(near, shuffles)
    yield _tested(row._replace(value=value, low=low, high=high, note="Spearman's, over concepts"), null)


def _tested(row: Row, null: Cells | None) -> Row:
    """The row with its p-value and its value with shuffled labels; without them if there are no shuffles."""
    if null is None or row.value is None:
        return row
    p_value = shuffle_p_value(row.value, null)
    return row._replace(p_value=p_value, p_at_most=is_floor(p_value, null), expected=float(null.mean()))


def _correlations(near: Cells, shuffles: Cells) -> Cells:
    """Spearman's coefficient of the alignments with the gaps of every shuffle."""
    ranks = stats.rankdata(near), stats.rankdata(shuffles, axis=0)
    first, second = (each - each.mean(axis=0) for each in ranks)
    return np.asarray(first @ second / np.sqrt((first**2).sum() * (second**2).sum(axis=0)))


def rank_correlation(first: Cells, second: Cells) -> tuple[float, float, float, float]:
    """Spearman's coefficient with Bonett and Wright's interval and its p-value; NaN where one does not vary."""
    test = stats.spearmanr(first, second)
    value = float(test.statistic)
    error = np.sqrt((1 + value**2 / 2) / (len(first) - 3))
    centre = np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    low, high = np.tanh(centre - NORMAL * error), np.tanh(centre + NORMAL * error)
    return value, float(low), float(high), float(test.pvalue)
