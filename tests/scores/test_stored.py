"""Stored scores: what a run scored is read again without its model, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder.datasets.folder import load
from beholder.models.load import load_model
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.fill import fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Scored, Store, scores_of, stored_scores

PROMPTS = prompt_set("words", [{"text": word} for word in ("warm", "cold", "wet")])


@pytest.mark.parametrize("model", ["null", pytest.param("glasshouse/contrastive", marks=pytest.mark.slow)])
def test_what_was_filled_is_read_again(model: str, people: Callable[..., Path], tmp_path: Path):
    tasks, store = [Task("words", load(str(people(6))), PROMPTS)], Store(tmp_path / "store")
    scorer = load_model(model)
    (filled,) = fill(tasks, scorer, store).matrices
    (read,) = stored_scores(tasks, scorer.spec, Store(store.root))
    assert read.channels == filled.channels
    assert read.images.equals(filled.images)
    assert np.array_equal(read.logits, filled.logits)


def test_images_and_prompts_that_were_never_scored_are_left_out(people: Callable[..., Path], tmp_path: Path):
    whole, store = load(str(people(6))), Store(tmp_path / "store")
    scorer = load_model("null")
    fill([Task("words", whole.limit(4), PROMPTS)], scorer, store)
    (read,) = stored_scores([Task("words", whole, PROMPTS)], scorer.spec, store)
    assert read.images.height == 4
    others = prompt_set("others", [{"text": "new"}])
    assert stored_scores([Task("others", whole, others)], scorer.spec, store) == []


def test_a_model_that_is_not_in_the_store_has_no_scores_and_leaves_no_folder(
    people: Callable[..., Path], tmp_path: Path
):
    tasks = [Task("words", load(str(people(2))), PROMPTS)]
    assert stored_scores(tasks, load_model("null").spec, Store(tmp_path / "store")) == []
    assert not (tmp_path / "store").exists()


def test_labels_that_are_numbers_in_one_data_set_and_texts_in_another_come_in_one_table(
    people: Callable[..., Path], tmp_path: Path
):
    store, scorer, whole = Store(tmp_path / "store"), load_model("null"), load(str(people(2)))
    ages = {"years": pl.lit(30), "bands": pl.lit("20-29")}
    tasks = [Task(name, replace(whole, table=whole.table.with_columns(age=ages[name])), PROMPTS) for name in ages]
    fill(tasks, scorer, store)
    table = scores_of([Scored("own", scorer.spec, task, None) for task in tasks], [store.root], {})
    assert table["age"].unique().sort().to_list() == ["20-29", "30"]
