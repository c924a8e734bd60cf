"""What a plan assumes, and what it takes from an earlier run."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from beholder.core.results import Row, results_table
from beholder.datasets.dataset import Dataset
from beholder.studies.gras.planning import ANSWER_DEVIATION, plan
from beholder.studies.planning import PlanOptions


@pytest.fixture(scope="module")
def people() -> Dataset:
    names = [str(i) for i in range(120)]
    table = pl.DataFrame({"image_id": names, "uri": names, "gender": ["Female", "Male"] * 60})
    return Dataset("people", "1", "none", table)


def one(rows: list[Row], metric: str) -> Row:
    (row,) = [row for row in rows if row.metric == f"plan.{metric}"]
    return row


def test_only_attributes_that_the_data_has_are_planned(people: Dataset) -> None:
    rows = list(plan(people, PlanOptions()))
    assert [(row.metric, row.concept, row.n) for row in rows] == [("plan.detectable", "gender", 120)]
    assert "assumed" in rows[0].note


def test_a_smaller_gap_takes_more_images_and_more_wordings(people: Dataset) -> None:
    small, large = (list(plan(people, PlanOptions(effect=effect))) for effect in (0.1, 0.3))
    assert one(small, "images_needed").value > one(large, "images_needed").value
    assert one(small, "prompts_needed").value is None  # 60 images a group cannot show it in any number of wordings
    assert one(large, "prompts_needed").value >= 2


def test_a_run_gives_the_spread_of_its_group_means(people: Dataset) -> None:
    margin = stats.t.ppf(0.975, 59) * 2 * ANSWER_DEVIATION / np.sqrt(60)
    row = Row("gras.group_mean", 0.5, 60, "probability", subset="gender", low=0.5 - margin, high=0.5 + margin)
    results = results_table([row], benchmark="gras", model="m", dataset="people")
    assumed, measured = (one(list(plan(people, PlanOptions(results=each))), "detectable") for each in (None, results))
    assert measured.value == pytest.approx(2 * assumed.value)
    assert "from the run" in measured.note
