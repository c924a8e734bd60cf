"""Alignment: how near a concept is to the words of each group, measured with word vectors.

The alignment of a concept with a group is its mean cosine with the group's words, less the mean over the other groups.
The vector of several words is the mean of their unit vectors. A concept without a vector has no alignment, and a note
says why. Alignments are facts about the texts on which the vectors were trained, not about people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from beholder.core.errors import DataError
from beholder.datasets.group_words import GroupWords
from beholder.studies.disparity.prompts import concept_name
from beholder.studies.disparity.vectors import Vector, WordVectors, read_vectors


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
