"""Perception's words are the study's; own dimensions come from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.core.errors import DataError
from beholder.studies.perception.prompts import (
    CONTROLS,
    DIMENSIONS,
    RELEASED_TEMPLATES,
    all_words,
    perception_prompts,
    read_dimensions,
)


def test_every_word_once_in_four_templates_beside_the_neutral_prompt():
    prompts = perception_prompts().table
    assert len(all_words()) == 39
    assert prompts.height == 4 * (1 + 39 + len(CONTROLS))
    assert prompts["text"].to_list()[:5] == [
        "A photo of a person.",
        "A person.",
        "This is a person.",
        "Cropped face photo of a person.",
        "A photo of a warm person.",
    ]
    assert prompts["prompt_id"].to_list() == prompts["text"].to_list()


def test_a_prompt_has_its_template_dimension_and_valence():
    rows = {(row["concept"], row["template"]): row for row in perception_prompts().table.to_dicts()}
    assert (rows["meek", "T2"]["dimension"], rows["meek", "T2"]["valence"]) == ("agency_neg", "negative")
    assert (rows["confident", "T1"]["dimension"], rows["confident", "T1"]["valence"]) == (
        "competence, agency_pos",
        "positive",
    )
    assert {rows[word, "T1"]["dimension"] for word in ("", "female")} == {None}


def test_the_eight_dimensions_have_the_studys_words():
    assert [len(dimension.words) for dimension in DIMENSIONS] == [6, 6, 6, 6, 4, 4, 6, 6]
    assert sum(len(dimension.words) for dimension in DIMENSIONS) == 44
    assert "likable" in DIMENSIONS[0].words
    shared = set(DIMENSIONS[1].words) & set(DIMENSIONS[2].words)
    assert shared == {"confident"}


def test_opposites_are_mutual():
    by_name = {dimension.name: dimension for dimension in DIMENSIONS}
    ends = [dimension for dimension in DIMENSIONS if dimension.opposite]
    assert len(ends) == 6
    for dimension in ends:
        assert by_name[dimension.opposite].opposite == dimension.name


def test_the_released_script_writes_the_fourth_template_without_full_stop():
    texts = perception_prompts(templates=RELEASED_TEMPLATES).texts
    assert "cropped face photo of a warm person" in texts
    assert "cropped face photo of a person" in texts


def test_own_dimensions_come_from_a_file(tmp_path: Path):
    path = tmp_path / "own.csv"
    path.write_text(
        "dimension,word,valence,opposite\nopen,curious,positive,closed\nopen,modern,,\nclosed,rigid,negative,open\n"
    )
    own = read_dimensions(path)
    assert [(d.name, d.words, d.valence, d.opposite) for d in own] == [
        ("open", ("curious", "modern"), "positive", "closed"),
        ("closed", ("rigid",), "negative", "open"),
    ]
    assert "A curious person." in perception_prompts(own).texts


def test_a_control_word_in_an_own_dimension_is_asked_once(tmp_path: Path):
    path = tmp_path / "own.csv"
    path.write_text("dimension,word\nyouth,young\nyouth,fresh\n")
    assert perception_prompts(read_dimensions(path)).texts.count("A young person.") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dimension,word\nopen,\n", "row 2 has no word"),
        ("dimension,word\n,open\n", "row 2 has no dimension"),
        ("dimension\nopen\n", "'word' is missing"),
        ("dimension,word\n", "no dimension"),
        ("dimension,word\nopen,a\nopen,a\n", "'a' more than once"),
        ("dimension,word,valence\nopen,a,good\n", "valence 'good'"),
        ("dimension,word,opposite\nopen,a,shut\n", "opposite 'shut'"),
    ],
)
def test_a_faulty_file_is_refused_with_the_place(tmp_path: Path, text: str, message: str):
    path = tmp_path / "own.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_dimensions(path)
