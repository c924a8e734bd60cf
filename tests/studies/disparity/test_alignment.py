"""Alignment: mean cosine with one group's words less the others', equal to the slow obvious computation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from beholder.core.errors import DataError
from beholder.datasets.settings import GENDER_WORDS, GroupWords
from beholder.studies.disparity.agreement import Alignment, align

ROWS = {"he": [1, 0], "him": [0.6, 0.8], "she": [0, 1], "tie": [1, 0], "bag": [0, 1], "hand": [1, 0], "x": [-1, 0]}


@pytest.fixture
def aligned(tmp_path: Path) -> Callable[..., tuple[dict[str, Alignment], list[str]]]:
    """Concepts aligned with groups' words, by a small file of vectors called `toy`."""

    def align_with(concepts: list[str], **words: tuple[str, ...]) -> tuple[dict[str, Alignment], list[str]]:
        path = tmp_path / "toy"
        path.write_text("".join(f"{word} {row[0]} {row[1]}\n" for word, row in ROWS.items()))
        return align(path, concepts, GroupWords("who", words))

    return align_with


Aligned = Callable[..., tuple[dict[str, Alignment], list[str]]]


def test_a_concept_leans_towards_the_group_whose_words_are_nearer(aligned: Aligned) -> None:
    tie = aligned(["tie"], man=("he", "him"), woman=("she",))[0]["tie"]
    assert tie.cosines == {"man": pytest.approx(0.8), "woman": pytest.approx(0.0)}
    assert tie.towards("man") == pytest.approx(0.8)
    assert tie.towards("woman") == pytest.approx(-0.8)


def test_two_words_are_the_mean_of_their_vectors(aligned: Aligned) -> None:
    handbag = aligned(["hand bag"], man=("he",), woman=("she",))[0]["hand bag"]
    assert handbag.cosines == {"man": pytest.approx(0.5**0.5), "woman": pytest.approx(0.5**0.5)}


def test_a_word_without_a_vector_makes_the_concept_absent_and_says_why(aligned: Aligned) -> None:
    found = list(aligned(["giraffe", "hand cream", "hand x"], man=("he",), woman=("she",))[0].values())
    assert [concept.cosines for concept in found] == [None] * 3
    assert found[0].note == "toy has no vector for giraffe"
    assert found[1].note == "toy has no vector for cream"
    assert found[2].note == "toy has no vector for 'hand x'"
    assert found[0].towards("man") is None


def test_missing_words_of_a_group_are_reported_and_a_group_without_any_is_refused(aligned: Aligned) -> None:
    assert aligned(["tie"], man=("he", "mans"), woman=("she",))[1] == ["toy lacks mans: man has 1 words"]
    with pytest.raises(DataError, match="none of the words for child"):
        aligned(["tie"], child=("kid",), woman=("she",))


def test_with_more_groups_each_stands_against_the_mean_of_the_rest(aligned: Aligned) -> None:
    tie = aligned(["tie"], a=("he",), b=("she",), c=("him",))[0]["tie"]
    assert tie.towards("b") == pytest.approx(0 - (1 + 0.6) / 2)


@pytest.mark.real
def test_the_real_vectors_align_as_gensim_says(data: Path) -> None:
    from gensim.models import KeyedVectors

    path = next((data / "word2vec").glob("*.bin"))
    other = KeyedVectors.load_word2vec_format(str(path), binary=True)
    concepts = ["tie", "handbag", "tennis racket", "giraffe", "knob.n.02", "hair drier"]
    aligned = align(path, concepts, GENDER_WORDS)[0]
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
    lipstick = align(path, ["lipstick.n.01"], groups)[0]["lipstick.n.01"]
    assert lipstick.name == "lipstick"
    assert lipstick.towards("woman") > 0
