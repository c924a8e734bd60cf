"""Perception in made worlds: a few of each, the issue's own cases; `beholder calibrate` draws hundreds."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.comparison.family import DIFFERENCE
from beholder.studies.perception.study import TRIALS
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import BRANCH_ONLY, DESIGNS, NOISE, UNFAIR, VECTORS, Design, World, draw


def called(world: World, seed: int = 1) -> set[str]:
    rows = TRIALS.measure(world, MeasureOptions(draws=50, permutations=5, shuffles=199, seed=seed))
    return {row.metric for row in rows if row.verdict == DIFFERENCE}


def test_a_model_without_any_doubt_is_found_unfair_from_ten_people_on():
    world = draw(UNFAIR, Design(10, 10), TRIALS.prompts, np.random.default_rng(1))
    assert called(world) >= {"perception.gap", "perception.sc_weat", "perception.markedness_gap"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "design"), [(VECTORS, "4 pictures a person"), (NOISE, "5 + 40"), (BRANCH_ONLY, "unbalanced strata")]
)
def test_worlds_without_effect_are_seldom_called(name: str, design: str):
    """A vector for each person, whose column is `name`: as if pictures were people, 78 of 100 were called."""
    calls = []
    for seed in range(12):
        world = draw(name, DESIGNS[design], TRIALS.prompts, np.random.default_rng(seed))
        calls += called(world._replace(table=world.table.rename({"person": "name"})), seed)
    assert max(map(calls.count, calls), default=0) <= 3  # 0.6 expected; more than 3 have a chance of 1 in 350
