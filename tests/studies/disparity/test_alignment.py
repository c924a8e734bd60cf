"""Alignment: mean cosine with one group's words less the others', equal to the slow obvious computation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from beholder.core.errors import DataError
from beholder.datasets.settings import GENDER_WORDS, GroupWords
from beholder.studies.disparity.agreement import WordVectors, align, align_concepts


def toy() -> WordVectors:
    rows = {"he": [1, 0], "him": [0.6, 0.8], "she": [0, 1], "tie": [1, 0], "bag": [0, 1], "hand": [1, 0], "x": [-1, 0]}
    return WordVectors("toy", 2, {word: np.array(row, dtype=np.float64) for word, row in rows.items()})


def test_a_concept_leans_towards_the_group_whose_words_are_nearer() -> None:
    (tie,) = align_concepts(toy(), {"tie": "tie"}, {"man": ["he", "him"], "woman": ["she"]}).concepts
    assert tie.cosines == {"man": pytest.approx(0.8), "woman": pytest.approx(0.0)}
    assert tie.towards("man") == pytest.approx(0.8)
    assert tie.towards("woman") == pytest.approx(-0.8)


def test_two_words_are_the_mean_of_their_vectors() -> None:
    aligned = align_concepts(toy(), {"handbag": "hand bag"}, {"man": ["he"], "woman": ["she"]})
    assert aligned.concepts[0].cosines == {"man": pytest.approx(0.5**0.5), "woman": pytest.approx(0.5**0.5)}


def test_a_word_without_a_vector_makes_the_concept_absent_and_says_why() -> None:
    names = {"giraffe": "giraffe", "hand cream": "hand cream", "cancelled": "hand x"}
    aligned = align_concepts(toy(), names, {"man": ["he"], "woman": ["she"]}).concepts
    assert [concept.cosines for concept in aligned] == [None] * 3
    assert aligned[0].note == "toy has no vector for giraffe"
    assert aligned[1].note == "toy has no vector for cream"
    assert aligned[2].note == "toy has no vector for 'hand x'"
    assert aligned[0].towards("man") is None


def test_missing_words_of_a_group_are_told_and_a_group_without_any_is_refused() -> None:
    aligned = align_concepts(toy(), {"tie": "tie"}, {"man": ["he", "mans"], "woman": ["she"]})
    assert aligned.notes == ["toy lacks mans: man has 1 words"]
    with pytest.raises(DataError, match="none of the words for child"):
        align_concepts(toy(), {"tie": "tie"}, {"child": ["kid"], "woman": ["she"]})


def test_with_more_groups_each_stands_against_the_mean_of_the_rest() -> None:
    aligned = align_concepts(toy(), {"tie": "tie"}, {"a": ["he"], "b": ["she"], "c": ["him"]}).concepts[0]
    assert aligned.towards("b") == pytest.approx(0 - (1 + 0.6) / 2)


@pytest.mark.real
def test_the_real_vectors_align_as_gensim_says(data: Path) -> None:
    from gensim.models import KeyedVectors

    path = next((data / "word2vec").glob("*.bin"))
    other = KeyedVectors.load_word2vec_format(str(path), binary=True)
    concepts = ["tie", "handbag", "tennis racket", "giraffe", "knob.n.02", "hair drier"]
    aligned = {alignment.concept: alignment for alignment in align(path, concepts, GENDER_WORDS).concepts}
    assert aligned["giraffe"].note == f"{path.name} has no vector for giraffe"
    words_of = {"tie": ["tie"], "tennis racket": ["tennis", "racket"], "knob.n.02": ["knob", "handle"]}
    for concept, words in words_of.items():
        vector = np.mean([other.get_vector(word, norm=True) for word in words], axis=0)
        means = {
            group: np.mean(
                [other.get_vector(term, norm=True) @ vector / np.linalg.norm(vector) for term in terms if term in other]
            )
            for group, terms in GENDER_WORDS.words.items()
        }
        assert aligned[concept].towards("man") == pytest.approx(means["man"] - means["woman"], abs=1e-6)


@pytest.mark.real
def test_the_groups_may_be_synsets(data: Path) -> None:
    path = next((data / "word2vec").glob("*.bin"))
    groups = GroupWords("gender", {"woman": ("woman.n.01", "grandma.n.01"), "man": ("man.n.01", "uncle.n.01")})
    (lipstick,) = align(path, ["lipstick.n.01"], groups).concepts
    assert lipstick.name == "lipstick"
    assert lipstick.towards("woman") > 0
