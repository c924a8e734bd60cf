"""Prompts say what they stand for and for whom they are right."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beholder.core.errors import DataError, UnknownName
from beholder.prompts.prompt_set import correct_cells, correct_for, parse_rule, prompt_set, read_prompts

IMAGES = pl.DataFrame({"gender": ["woman", "man", None], "award": [0, 1, 0], "name": ["A & B", "x=y", "50% + 1"]})


def cells(*rules: str):
    rows = [{"text": str(i), "correct_for": rule} for i, rule in enumerate(rules)]
    return correct_cells(prompt_set("toy", rows).table, IMAGES).T.tolist()


def test_rules_choose_images():
    assert cells("*", "", "gender=woman", "gender=woman&award=0", "award=0") == [
        [True, True, True],
        [False, False, False],
        [True, False, False],
        [True, False, False],
        [True, False, True],
    ]


@pytest.mark.slow
@given(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))
def test_any_value_survives_a_rule(key_free_value: str, other: str):
    assert parse_rule(correct_for(name=key_free_value, film=other)) == {"name": key_free_value, "film": other}


def test_names_with_signs_find_their_images():
    assert cells(*(correct_for(name=name) for name in IMAGES["name"])) == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]


def test_a_rule_about_an_unknown_attribute_suggests():
    with pytest.raises(UnknownName, match="Did you mean 'gender'"):
        cells("genders=woman")


def test_a_rule_that_cannot_be_read_is_refused():
    with pytest.raises(DataError, match="cannot be read"):
        parse_rule("woman")


def test_a_prompt_may_stand_only_once():
    with pytest.raises(DataError, match="'same' occurs more than once"):
        prompt_set("toy", [{"text": "same"}, {"text": "same"}])


def test_the_digest_follows_texts_and_order_not_meaning():
    one = prompt_set("a", [{"text": "x"}, {"text": "y", "level": "l"}])
    assert one.digest == prompt_set("b", [{"text": "x"}, {"text": "y"}]).digest
    assert one.digest != prompt_set("b", [{"text": "y"}, {"text": "x"}]).digest


def test_own_prompts_are_read_from_a_file(tmp_path: Path):
    path = tmp_path / "mine.csv"
    path.write_text("text,concept,correct_for\na photo of a dog,dog,\na photo of a woman,,gender=woman\n")
    table = read_prompts(path).table
    assert table["concept"].to_list() == ["dog", "a photo of a woman"]
    assert table["level"].to_list() == ["prompts", "prompts"]
    assert table["correct_for"].to_list() == ["", "gender=woman"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prompt\nx\n", "column 'text' is missing"),
        ("text\n", "no prompt"),
        ("text,correct_for\nx,woman\n", "cannot be read"),
    ],
)
def test_a_bad_prompt_file_is_refused(tmp_path: Path, text: str, message: str):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_prompts(tmp_path / "bad.csv")
