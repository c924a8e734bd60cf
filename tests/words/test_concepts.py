"""Concepts as words: categories as they are, synsets by their lemma, ambiguous ones by the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.errors import DataError
from beholder.words.concepts import concept_name, read_ambiguous


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


def test_own_names_for_ambiguous_synsets_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("concept,name\ntie.n.04,neck tie\nknob.n.02,door knob\n")
    table = read_ambiguous(path)
    assert [concept_name(c, table) for c in ("tie.n.04", "knob.n.02", "helmet.n.02")] == [
        "neck tie", "door knob", "protective helmet",
    ]  # fmt: skip
    path.write_text("concept,name\ntie.n.04,\n")
    with pytest.raises(DataError, match="row 2 has no name"):
        read_ambiguous(path)
