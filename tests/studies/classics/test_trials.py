"""The classics in worlds of known truth: silent where there is nothing, never about a wholly unfair model."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.comparison.family import DIFFERENCE
from beholder.studies.classics.study import TRIALS
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import CONSTANTS, DESIGNS, GENDER_ONLY, NOISE, UNFAIR, Design, draw

OPTIONS = MeasureOptions(draws=100, permutations=10, shuffles=500)


def called(world: str, design: Design, seed: int) -> set[str]:
    """What is called, by metric and attribute, where it is not true."""
    drawn = draw(world, design, TRIALS.prompts, np.random.default_rng([8, seed]))
    rows = [row for row in TRIALS.measure(drawn, OPTIONS) if row.verdict == DIFFERENCE]
    return {f"{row.metric}:{row.subset}" for row in rows if not TRIALS.may_say(row.metric, row.subset, world)}


@pytest.mark.parametrize("world", [NOISE, CONSTANTS, GENDER_ONLY])
@pytest.mark.parametrize("design", ["30 + 30", "8 + 72"])
def test_where_nothing_is_seen_next_to_nothing_is_called(world: str, design: str):
    alarms = [called(world, DESIGNS[design], seed) for seed in range(8)]
    assert sum(map(bool, alarms)) <= 2, alarms


def test_a_wholly_unfair_model_is_called_by_every_measure():
    drawn = draw(UNFAIR, Design(10, 10), TRIALS.prompts, np.random.default_rng(3))
    found = {row.metric for row in TRIALS.measure(drawn, OPTIONS) if row.verdict == DIFFERENCE}
    assert found >= {name for name in TRIALS.found if name.split(".")[1] not in ("label", "retrieval", "images")}
