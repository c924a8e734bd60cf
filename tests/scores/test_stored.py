"""Stored scores: what a run scored is read again without its model, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from beholder.datasets.folder import load
from beholder.models.load import load_model
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.fill import fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store, stored_scores

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
