"""Which gap of average precision a data set can show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE
from beholder.core.errors import UsageError
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.gaps import find_gaps
from beholder.studies.disparity.scores import read_concept_scores
from beholder.studies.disparity.study import QUALITY, detectable, plan
from beholder.studies.rows import PlanOptions
from beholder.studies.study import MeasureOptions


@pytest.mark.slow
def test_a_rare_concept_needs_a_wider_gap_than_a_frequent_one(object_world: Callable[..., ScoreMatrix]):
    rare = {(group, "tie"): 0.08 for group in ("man", "woman")}
    dataset = object_world(300, ("tie", "dog"), rare=rare).dataset
    made = list(plan(dataset, PlanOptions(effect=0.05)))
    rows = {row.concept: row for row in made if row.metric == "plan.detectable"}
    assert rows["tie"].value > 1.5 * rows["dog"].value
    assert {row.n for row in rows.values()} == {300}
    needed = {row.concept: row for row in made if row.unit == "images"}
    assert needed["tie"].value > needed["dog"].value > 300


def test_a_data_set_without_objects_cannot_be_planned(object_world: Callable[..., ScoreMatrix]):
    with pytest.raises(UsageError, match="does not say what its images show"):
        list(plan(replace(object_world(40).dataset, objects=None), PlanOptions()))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 2), (5, 5), (3, 40)])
def test_tiny_data_have_a_plan_without_a_number(object_world: Callable[..., ScoreMatrix], sizes: tuple[int, int]):
    dataset = object_world(100, ("tie",)).dataset
    both = [dataset.table.filter(gender=group).head(size) for group, size in zip(("man", "woman"), sizes, strict=True)]
    for table in (pl.concat(both), both[0]):
        objects = dataset.objects.join(table, on="image_id", how="semi")
        assert list(plan(replace(dataset, table=table, objects=objects), PlanOptions())) == []


@pytest.mark.slow
def test_a_gap_that_was_planned_is_found_as_often_as_promised(object_world: Callable[..., ScoreMatrix]):
    """Thirty men and thirty women, half of them with the concept: the loss of the plan, in worlds drawn anew."""
    dataset = object_world(60, ("tie", "dog"), rare={(g, c): 0.5 for g in ("man", "woman") for c in ("tie", "dog")})
    data = read_concept_scores(dataset, None)
    loss, gap = detectable(data, np.arange(2), 0, 0.8)
    assert 0.1 < gap < 0.6
    rng, found = np.random.default_rng(1), 0
    for seed in range(60):
        scores = rng.standard_normal(data.present.shape) + QUALITY * data.present
        scores[:, 0] -= loss * (data.present[:, 0] & data.sets[1])
        gaps = find_gaps(replace(data, scores=scores), MeasureOptions(draws=100, shuffles=299, seed=seed))
        found += gaps.judged.gaps[0, 0].verdict == DIFFERENCE
    assert 0.65 < found / 60 < 0.95
