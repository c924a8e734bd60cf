"""GRAS's questions are the study's, in its words."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from beholder.core.errors import DataError
from beholder.datasets.dataset import Dataset
from beholder.datasets.images import Changed, changed, source_of
from beholder.models.generative.model_types import MODEL_TYPES
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import read_templates
from beholder.studies.gras.prompts import YES_OR_NO, gras_prompts, gras_statements, read_traits, released_instruction
from beholder.studies.gras.study import GRAS


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


KINDS = {
    "blip": ("blip-2", MODEL_TYPES["blip-2"].form),
    "llava": ("llava", "{}"),
    "paligemma": ("paligemma", "{}"),
    "phi": ("phi4_multimodal", "<|user|><|image_1|>{}<|end|><|assistant|>"),
    "qwen": ("qwen2_5_vl", "{}"),
}
"""Model type, and what its form writes around the text: BLIP-2's is ours, Phi-4's marks are its chat template's."""


@pytest.mark.real
def test_compat_sends_the_strings_of_all_ten_released_scripts(shared: Path):
    """Prompt, token and picture size of every script, as the table of the sources lists them."""
    with (shared / "reference" / "gras_released_prompts.csv").open() as file:
        scripts = list(csv.DictReader(file))
    assert len(scripts) == 10
    for script in scripts:
        kind, form = KINDS[script["script"]]
        spec = ModelSpec("m", "generative", "w", "r", settings={"model_type": kind})
        instruction = released_instruction(spec)
        sent = form.replace("{}", instruction.ask("{question}"))
        blanks = re.sub(r"<(\d+) blanks>", lambda match: " " * int(match[1]), script["prompt (runs of blanks counted)"])
        assert sent == blanks, script["script"]
        assert repr(instruction.measure or instruction.yes) == script["token"]
        assert side(script["images"]) == {"none": None, "256x256": (256, 256)}[script["image resized to"]]


def side(part: str) -> tuple[int, int] | None:
    """What `--compat` does to a picture of this part before the model's own processor; None for nothing."""
    table = pl.DataFrame(
        {"image_id": ["a"], "uri": ["glasshouse:woman/age25/tone1/smile0/light0/pose0"], "part": [part]}
    )
    (task,) = GRAS.tasks_of(answers=True, compat=True)(Dataset("gras", "1", "own", table))
    (uri,) = task.dataset.table["uri"]
    source = source_of(uri)
    return changed(Image.new("RGB", (300, 200)), source.change).size if isinstance(source, Changed) else None


def test_a_model_that_matches_texts_gets_statements_with_compat_too():
    dataset = Dataset("gras", "1", "own", pl.DataFrame({"image_id": ["a"], "uri": ["a.jpg"], "part": ["aiface"]}))
    assert len(GRAS.tasks_of(answers=False, compat=True)(dataset)) == 2


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
