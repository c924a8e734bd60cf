"""Disparity's trials measure worlds with the study's own code."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.comparison.family import DIFFERENCE
from beholder.studies.disparity.study import TRIALS
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import ALWAYS_YES, UNFAIR, VECTORS, Design, draw

FEW = MeasureOptions(draws=100, shuffles=299)


def found(world: str, design: Design, seed: int = 1) -> set[str]:
    rows = TRIALS.measure(draw(world, design, TRIALS.prompts, np.random.default_rng(seed)), FEW)
    return {row.metric for row in rows if row.verdict == DIFFERENCE}


@pytest.mark.parametrize("design", [Design(10, 10), Design(5, 40), Design(10, 10, pictures=4)])
def test_a_wholly_unfair_model_is_found_from_ten_people_on(design: Design):
    assert set(TRIALS.found) <= found(UNFAIR, design)


def test_a_model_that_always_says_yes_is_not_unfair():
    assert not found(ALWAYS_YES, Design(30, 30))


@pytest.mark.slow
def test_a_vector_per_person_gives_no_more_than_chance():
    calls = [bool(found(VECTORS, Design(12, 12, pictures=4), seed)) for seed in range(12)]
    assert sum(calls) <= 3
