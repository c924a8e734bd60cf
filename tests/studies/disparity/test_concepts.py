"""Concepts as words: categories as they are, synsets by their lemma, ambiguous ones by the table."""

from __future__ import annotations

import pytest

from beholder.studies.disparity.prompts import concept_name


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
