"""Own prompts on own pictures, by group."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.core.errors import UnknownName
from beholder.datasets.dataset import Dataset
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.custom.study import custom_study
from beholder.studies.study import MeasureOptions

IMAGES = pl.DataFrame({"image_id": ["0", "1"], "uri": ["0", "1"], "gender": ["woman", "man"]})
PROMPTS = prompt_set(
    "mine",
    [
        {"text": "kind", "level": "trait", "concept": "kind", "correct_for": "gender=woman"},
        {"text": "cold", "level": "trait", "concept": "cold"},
    ],
)


def rows(by: tuple[str, ...], cells: list[list[float]]):
    study = custom_study(PROMPTS, by=by)
    matrix = ScoreMatrix("custom", IMAGES, PROMPTS.table, ("score",), np.log(np.array(cells))[:, :, None])
    return {
        (r.metric, r.subset, r.group, r.concept): r
        for r in study.measures.functions[0]({"custom": matrix}, MeasureOptions(draws=100))
    }


def test_belief_is_told_for_everyone_and_by_group():
    found = rows(("gender",), [[0.8, 0.2], [0.4, 0.6]])
    assert found["custom.probability", None, None, "kind"].value == pytest.approx(0.6)
    assert found["custom.probability", "gender", "man", "cold"].value == pytest.approx(0.6)
    assert found["custom.association", None, None, "trait"].value == pytest.approx(0.8)
    assert found["custom.association", None, None, "trait"].n == 1
    assert found["custom.probability", None, None, "kind"].note.endswith("among the 2 prompts of level 'trait'")


def test_an_image_without_a_group_is_in_none_and_one_without_a_score_not_in_its_level():
    images = pl.DataFrame({"image_id": list("abc"), "uri": list("abc"), "gender": ["woman", None, "man"]})
    cells = np.log([[0.8, 0.2], [0.5, 0.5], [0.4, 0.6]])[:, :, None]
    cells[2, 1] = np.nan
    matrix = ScoreMatrix("custom", images, PROMPTS.table, ("score",), cells)
    found = custom_study(PROMPTS, by=("gender",)).measures.functions[0]({"custom": matrix}, MeasureOptions(draws=100))
    sizes = {(row.group, row.n) for row in found if row.metric == "custom.probability"}
    assert sizes == {(None, 2), ("woman", 1)}


def test_groups_that_are_numbers_stand_by_their_size():
    images = pl.DataFrame({"image_id": list("abcd"), "uri": list("abcd"), "tone": ["10", "unknown", "2", "1"]})
    cells = np.zeros((4, 2, 1))
    matrix = ScoreMatrix("custom", images, PROMPTS.table.with_columns(correct_for=pl.lit("")), ("score",), cells)
    found = custom_study(PROMPTS, by=("tone",)).measures.functions[0]({"custom": matrix}, MeasureOptions(draws=100))
    assert list(dict.fromkeys(row.group for row in found)) == [None, "1", "2", "10", "unknown"]


def test_an_unknown_attribute_is_refused_before_anything_is_scored():
    dataset = Dataset("toy", "1", "MIT", IMAGES)
    with pytest.raises(UnknownName, match="Did you mean 'gender'"):
        custom_study(PROMPTS, by=("genders",)).asks.tasks(dataset)


def test_a_rule_about_an_unknown_attribute_is_refused_before_anything_is_scored():
    prompts = prompt_set("mine", [{"text": "kind", "level": "trait", "correct_for": "genders=woman"}])
    with pytest.raises(UnknownName, match="Did you mean 'gender'"):
        custom_study(prompts).asks.tasks(Dataset("toy", "1", "MIT", IMAGES))


def test_a_detectors_concepts_do_not_compete():
    matrix = ScoreMatrix("custom", IMAGES, PROMPTS.table, ("presence",), np.array([[[0.9], [0.8]], [[0.1], [0.2]]]))
    rows = list(
        custom_study(PROMPTS, by=("gender",)).measures.functions[0]({"custom": matrix}, MeasureOptions(draws=100))
    )
    assert {row.metric for row in rows} == {"custom.presence"}
    assert next(r for r in rows if r.group == "woman" and r.concept == "kind").value == pytest.approx(0.9)


def test_an_answering_model_is_told_by_p_yes_too():
    cells = np.log(np.array([[[0.9, 0.5], [0.8, 0.5]], [[0.1, 0.5], [0.2, 0.5]]]))
    matrix = ScoreMatrix("custom", IMAGES, PROMPTS.table, ("logit_true", "log_p_yes"), cells)
    rows = list(custom_study(PROMPTS).measures.functions[0]({"custom": matrix}, MeasureOptions(draws=100)))
    assert next(r for r in rows if r.metric == "custom.p_yes" and r.concept == "cold").value == pytest.approx(0.5)
    assert any(r.metric == "custom.probability" for r in rows)
