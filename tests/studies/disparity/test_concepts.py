"""Concepts as words: categories as they are, synsets by their lemma, ambiguous ones by the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.core.errors import DataError
from beholder.studies.disparity.prompts import concept_name, disparity_prompts, read_words


@pytest.mark.parametrize(
    ("concept", "name"),
    [
        ("tie", "tie"),
        ("dining table", "dining table"),
        ("tennis_racket.n.01", "tennis racket"),
        ("knob.n.02", "knob handle"),
        ("knob.n.01", "knob"),
        ("helmet.n.02", "protective helmet"),
        ("ex-husband.n.01", "ex-husband"),
        ("mr..n.01", "mr."),
    ],
)
def test_a_concept_is_called_by_its_words(concept: str, name: str) -> None:
    assert concept_name(concept) == name


def test_the_words_of_ambiguous_concepts_are_a_table_that_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("concept,words\nbat.n.01,flying bat\n")
    words = read_words(path, "words")
    assert disparity_prompts(["bat.n.01", "knob.n.02"], ambiguous=words).texts == [
        "a photo of a flying bat",
        "a photo of a knob",
    ]
    path.write_text("concept,words\nbat.n.01,a\nbat.n.01,b\n")
    with pytest.raises(DataError, match=r"the concept 'bat.n.01' occurs more than once"):
        read_words(path, "words")
