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

from beholder.comparison import Part, comparison_at, judge, part_from_null
from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.datasets.settings import GroupWords
from beholder.studies.disparity.gaps import Gaps
from beholder.studies.disparity.prompts import AMBIGUOUS, Words, concept_name
from beholder.studies.disparity.scores import Cells, Sides
from beholder.studies.disparity.vectors import Vector, WordVectors, read_vectors
from beholder.studies.rows import PROBABILITY, join

FEWEST_CONCEPTS = 10
"""No rank correlation is given for fewer concepts."""
ERRORS = ("ece_gap", "miscalibration_gap")
GAPS = ("ap_gap", JUDGED := "ap_gap_matched", *ERRORS)


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

    `every` counts all concepts with a gap, as the study does; otherwise only those with enough people to test.
    """
    data = gaps.data
    words, names = data.dataset.group_words, data.groups.names
    if words is None or set(words.groups) != set(names):
        note = f"{data.dataset.name} has no words for {', '.join(names)}"
        yield Row("disparity.word_alignment", None, 0, "cosine", note=note)
        return
    alignments = align(vectors, data.concepts, words, ambiguous)
    source = join([vectors.name, *alignments.notes])
    rows, shares, parts = list(gap_rows), [], []
    for code, pair in enumerate(data.pairs):
        towards = [each.towards(names[code]) for each in alignments.concepts]
        for each, value in zip(alignments.concepts, towards, strict=True):
            number = sum(map(len, words.words.values()))
            note = each.note or f"as '{each.name}'"
            yield pair.row("word_alignment", value, number, "cosine", concept=each.concept, note=note)
        for gap in GAPS:
            found = _gaps_of(rows, gap, pair, data.concepts if every else _tested(gaps, pair))
            kept = [column for column, name in enumerate(data.concepts) if towards[column] and found.get(name)]
            near = np.array([towards[column] for column in kept], dtype=np.float64)
            made = agreement_rows(near, np.array([found[data.concepts[column]] for column in kept]), gap)
            for row in made:
                row = row._replace(group=pair.group, against=pair.against, note=join((row.note, source)))
                if gap == JUDGED and row.metric.endswith("word_agreement"):
                    shares.append(row)
                    parts.append(_agreement_part(gaps, pair, near, kept))
                else:
                    yield row
    for row, part, judged in zip(shares, parts, judge(parts), strict=True):
        usual = float(row.value or 0.0) - float(part.value[0])
        comparison = comparison_at(judged, 0)
        moved = comparison._replace(value=usual + comparison.value, low=usual + comparison.low)
        moved = moved._replace(high=usual + comparison.high)
        yield from moved.rows(row._replace(expected=usual), data.strata, least=0.0, most=1.0)


def _tested(gaps: Gaps, pair: Sides) -> list[str]:
    return [gaps.data.concepts[column] for column in np.flatnonzero(gaps.enough(pair)).tolist()]


def _gaps_of(rows: list[Row], gap: str, pair: Sides, concepts: Sequence[str]) -> dict[str, float]:
    """The published gaps of some concepts. Positive is better for the first group: a smaller error counts as such."""
    known, sign = set(concepts), -1.0 if gap in ERRORS else 1.0
    own = [row for row in rows if row.metric == f"disparity.{gap}" and (row.group, row.against) == pair[:2]]
    valued = {str(row.concept): row.value for row in own if row.variant is None and row.concept in known}
    return {name: sign * value for name, value in valued.items() if value is not None and np.isfinite(value)}


def agreement_rows(near: Cells, gaps: Cells, gap: str) -> Iterator[Row]:
    """The share of concepts whose gap has the sign of their alignment, and the rank correlation of both."""
    n = len(near)
    if not n:
        return
    same = int(((near > 0) == (gaps > 0)).sum())
    better = "a smaller error counts as better; " if gap in ERRORS else ""
    note = f"concepts that are better for the group whose words are nearer; {better}0.5 by chance"
    yield Row("disparity.word_agreement", same / n, n, PROBABILITY, subset=gap, note=note)
    row = Row("disparity.word_correlation", None, n, "rank correlation", subset=gap)
    if n < FEWEST_CONCEPTS:
        yield row._replace(note=f"fewer than {FEWEST_CONCEPTS} concepts")
    else:
        yield row._replace(value=rank_correlation(near, gaps), note="Spearman's, over concepts")


def _agreement_part(gaps: Gaps, pair: Sides, near: Cells, columns: list[int]) -> Part:
    """The share that agrees, here and when people change groups.

    Gaps of all concepts move together, because images show several: so concepts are not counted as independent.
    """
    data, index = gaps.data, gaps.data.pairs.index(pair)
    null = gaps.within[index, columns]
    centre = np.nanmean(null, axis=1)
    gap = (gaps.precision.matched[pair.first] - gaps.precision.matched[pair.second])[columns] - centre
    shares = [((near[:, None] > 0) == (each > 0)).mean(axis=0) for each in (gap[:, None], null - centre[:, None])]
    return part_from_null(shares[0], shares[1][:, None], people=int(data.fewest[index, columns].min()))


def rank_correlation(first: Cells, second: Cells) -> float:
    """Spearman's coefficient; NaN where one does not vary."""
    return float(stats.spearmanr(first, second).statistic)
