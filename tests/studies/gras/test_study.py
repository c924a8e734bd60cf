"""GRAS is declared with its tasks, its metrics and the user's options."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import UsageError
from beholder.datasets.dataset import Dataset
from beholder.studies.gras.groups import DENIALS, QUESTIONS, STATEMENTS
from beholder.studies.gras.study import GRAS, configured, gras_study

TRAITS = pl.DataFrame({"trait": ["kind", "cold", "calm", "loud"], "valence": ["positive", "negative"] * 2})


@pytest.fixture
def dataset(world) -> Dataset:
    return Dataset("d", "1", "none", world(4).images.with_columns(uri="image_id"))


def test_a_model_that_answers_is_asked_and_another_gets_statements_and_denials(dataset: Dataset):
    assert [task.name for task in GRAS.tasks_of(answers=True)(dataset)] == [QUESTIONS]
    assert [task.name for task in GRAS.tasks_of(answers=False)(dataset)] == [STATEMENTS, DENIALS]


def test_own_wordings_are_refused_where_a_model_cannot_be_asked(dataset: Dataset):
    own = gras_study(TRAITS, {"T1": "Is {}?"})
    assert len(own.tasks_of(answers=True)(dataset)) == 1
    with pytest.raises(UsageError, match="Leave out --templates"):
        own.tasks_of(answers=False)(dataset)


def test_the_users_files_replace_traits_and_wordings(dataset: Dataset, tmp_path: Path):
    (tmp_path / "traits.csv").write_text("trait,valence\npunctual,positive\n")
    (tmp_path / "templates.csv").write_text("template,text\nQ1,Is this person {}?\n")
    own = configured(GRAS, {"traits": tmp_path / "traits.csv", "templates": tmp_path / "templates.csv"})
    (task,) = own.tasks_of(answers=True)(dataset)
    assert task.prompts.texts == ["Is this person punctual?"]


@pytest.mark.slow
def test_every_metric_is_declared_and_pairs_are_marked(crossed, measure):
    rows = measure(crossed(), delta=0.03)
    assert {row.metric for row in rows} <= {metric.name for metric in GRAS.measures.metrics}
    paired = {row.metric for row in rows if row.against is not None}
    assert paired == {"gras.largest_gap", "gras.other_gap"}
    assert {metric.name for metric in GRAS.measures.metrics if metric.paired} == paired
