"""Which gap of average precision a data set can show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from beholder.core.errors import UsageError
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.planning import plan
from beholder.studies.planning import PlanOptions


def test_a_rare_concept_needs_a_wider_gap_than_a_frequent_one(object_world: Callable[..., ScoreMatrix]):
    rare = {(group, "tie"): 0.05 for group in ("man", "woman")}
    dataset = object_world(400, ("tie", "dog", "chair"), rare=rare).dataset
    rows = {row.concept: row for row in plan(dataset, PlanOptions()) if row.metric == "plan.detectable"}
    assert rows["tie"].value > 1.5 * rows["dog"].value
    assert {row.n for row in rows.values()} == {400}
    needed = {row.concept: row for row in plan(dataset, PlanOptions(effect=0.05)) if row.unit == "images"}
    assert needed["tie"].value > needed["dog"].value > 400


def test_a_data_set_without_objects_cannot_be_planned(object_world: Callable[..., ScoreMatrix]):
    with pytest.raises(UsageError, match="does not say what its images show"):
        list(plan(replace(object_world(40).dataset, objects=None), PlanOptions()))
