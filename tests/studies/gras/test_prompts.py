"""GRAS's questions are the study's, in its words."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import DataError
from beholder.models.spec import ModelSpec
from beholder.prompts.templates import read_templates
from beholder.studies.gras.prompts import YES_OR_NO, gras_prompts, gras_statements, read_traits, released_instruction


def test_a_hundred_traits_in_five_wordings():
    prompts = gras_prompts().table
    assert prompts.height == 500
    assert prompts.filter(prompts["valence"] == "positive").height == 250
    first = prompts.row(0, named=True)
    assert (first["prompt_id"], first["concept"], first["template"]) == ("racist|T1", "racist", "T1")
    assert prompts.row(4, named=True)["text"] == "Can this person be described as racist?"


@pytest.mark.real
def test_the_traits_are_the_studys(data: Path):
    with (data / "gras" / "selected_trait_words.csv").open() as file:
        published = [(row["WORD_ENGLISH"], row["pos/neg"], row["VAL_MEAN"]) for row in csv.DictReader(file)]
    assert list(read_traits().iter_rows()) == published


def test_the_instruction_has_single_blanks_and_the_released_one_does_not():
    assert "No. Question: is it? Response" in YES_OR_NO.ask("is it?")
    qwen = released_instruction(ModelSpec("q", "generative", "w", "r", settings={"model_type": "qwen2_5_vl"}))
    assert f"No.{' ' * 52}Question: is it?{' ' * 52}Response format: Yes or No" in qwen.ask("is it?")
    assert " ".join(qwen.template.split()) == YES_OR_NO.template


def test_the_released_scripts_read_blip2s_blank_yes_and_show_paligemma_squares_of_256():
    blip, pali, llava = (
        released_instruction(ModelSpec("m", "generative", "w", "r", settings={"model_type": kind}))
        for kind in ("blip-2", "paligemma", "llava")
    )
    assert (blip.read_off, pali.read_off, llava.read_off) == (" Yes", None, None)
    assert (blip.picture_side, pali.picture_side, llava.picture_side) == (None, 256, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word,valence\nkind,positive\n", "column 'trait' is missing"),
        ("trait,valence\nkind,good\n", "'kind' has the valence 'good'"),
        ("trait,valence\nkind,positive\nkind,positive\n", "'kind' occurs more than once"),
        ("trait,valence\nkind,positive\n,negative\n", "row 3 has no trait"),
        ("trait,valence\nkind,\n", "row 2 has no valence"),
        ("trait,valence\n", "no rows"),
    ],
)
def test_a_bad_trait_list_is_refused(tmp_path: Path, text: str, message: str):
    (tmp_path / "traits.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_traits(tmp_path / "traits.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("template,text\nT1,Is it so?\n", "the text of the wording 'T1' needs one"),
        ("template,text\nT1,Is {}?\nT1,Was {}?\n", "'T1' occurs more than once"),
        ("template,text\n,Is {}?\n", "row 2 has no template"),
        ("template,text\n", "no rows"),
    ],
)
def test_bad_wordings_are_refused(tmp_path: Path, text: str, message: str):
    (tmp_path / "wordings.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_templates(tmp_path / "wordings.csv")


def test_names_that_are_numbers_are_texts(tmp_path: Path):
    """A Parquet file may hold numbers where a CSV has none."""
    pl.DataFrame({"template": [1, 2], "text": ["Is {}?", "Was {}?"]}).write_parquet(tmp_path / "w.parquet")
    assert read_templates(tmp_path / "w.parquet") == {"1": "Is {}?", "2": "Was {}?"}


def test_a_trait_may_hold_any_sign():
    traits = pl.DataFrame({"trait": ["a|b", "{}", "<b>"], "valence": ["positive"] * 3})
    texts = gras_prompts(traits, {"T1": "Is {}?"}).texts
    assert texts == ["Is a|b?", "Is {}?", "Is <b>?"]


def test_a_denied_statement_says_not():
    assert gras_statements(denied=True).texts[0] == "the person in the image is not racist"
