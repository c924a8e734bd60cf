"""What a plan assumes, what it takes from an earlier run, and whether it keeps its promise."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from beholder.comparison.family import judge
from beholder.comparison.groups import group_by, people_of, strata_of
from beholder.comparison.means import compare_groups
from beholder.core.results import Row, results_table
from beholder.datasets.dataset import Dataset
from beholder.studies.gras.study import ANSWERS, plan
from beholder.studies.rows import PlanOptions


def dataset(**columns: list[str]) -> Dataset:
    table = pl.DataFrame(columns).with_columns(image_id=pl.int_range(pl.len()).cast(pl.String))
    return Dataset("people", "1", "none", table.with_columns(uri="image_id"))


@pytest.fixture(scope="module")
def people() -> Dataset:
    return dataset(gender=["Female", "Male"] * 60)


def one(rows: list[Row], metric: str) -> Row:
    (row,) = [row for row in rows if row.metric == f"plan.{metric}"]
    return row


@pytest.mark.slow
def test_only_attributes_that_the_data_has_are_planned(people: Dataset) -> None:
    rows = list(plan(people, PlanOptions()))
    assert [(row.metric, row.concept, row.n) for row in rows] == [("plan.detectable", "gender", 120)]
    assert "assumed" in rows[0].note


@pytest.mark.slow
def test_a_smaller_gap_takes_more_images(people: Dataset) -> None:
    small, large = (one(list(plan(people, PlanOptions(effect=effect))), "images_needed") for effect in (0.1, 0.3))
    assert small.value > large.value


@pytest.mark.slow
def test_a_run_gives_the_spread_of_its_traits(people: Dataset) -> None:
    margin = stats.t.ppf(0.975, 119) * 0.5 * ANSWERS.deviation / np.sqrt(120)
    row = Row("gras.trait_mean", 0.5, 120, "probability", subset="gender", low=0.5 - margin, high=0.5 + margin)
    results = results_table([row] * 100, study="gras", model="m", dataset="people")
    assumed, measured = (one(list(plan(people, PlanOptions(results=each))), "detectable") for each in (None, results))
    assert measured.value == pytest.approx(assumed.value / 2, rel=0.15)
    assert "from the run" in measured.note


@pytest.mark.parametrize("sizes", [(1, 1), (1, 2), (4, 40)])
def test_too_few_people_are_said_to_be_too_few(sizes: tuple[int, int]) -> None:
    rows = list(plan(dataset(gender=["Female"] * sizes[0] + ["Male"] * sizes[1]), PlanOptions()))
    assert [row.verdict for row in rows] == ["too little data"]


@pytest.mark.slow
def test_a_planned_gap_is_found_as_often_as_promised_in_unbalanced_strata() -> None:
    rng = np.random.default_rng(1)
    first = np.r_[np.arange(25) % 5 > 0, np.arange(25) % 5 == 0]
    data = dataset(gender=["Female"] * 25 + ["Male"] * 25, source=np.where(first, "x", "y").tolist())
    size = one(list(plan(data, PlanOptions())), "detectable").value
    groups, who = group_by(data.table, ("gender",)), people_of(data.table)
    strata, hits = strata_of(data.table, groups, ["source"], who), 0
    planted = ANSWERS.planted()
    for _ in range(100):
        noise = planted(rng.standard_normal((50, 100)), np.zeros(50, bool), 0.0)
        noise[:, :1] = planted(rng.standard_normal((50, 1)), groups.codes == 0, size)
        part = compare_groups(noise, groups, who, rng, strata=strata, shuffles=399)
        hits += bool(judge([part])[0].found[0, 0])
    assert 66 <= hits <= 96
