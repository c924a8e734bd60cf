"""A fixed small sample of what `beholder calibrate` draws: every study in every world, in seconds."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

import numpy as np
import pytest

from beholder.calibration.claims import Cell, claims, measured, tried_studies
from beholder.studies import STUDIES
from beholder.studies.worlds import DESIGNS, SMALLEST, UNFAIR, WORLDS

SEED = 20260801
MOST = 3
"""False alarms of a claim in twelve worlds: more have a chance below 1 in 500."""


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_a_claim_is_seldom_called_where_it_is_not_true_and_an_unfair_model_is_found(study: str):
    trials = tried_studies().get(study)
    if trials is None:
        pytest.skip("no worlds are declared")
    alarms: Counter[str] = Counter()
    for world, design in zip([world for world in WORLDS if world != UNFAIR], cycle(trials.designs), strict=False):
        cell = Cell(study, design, world)
        rows = measured(cell, np.random.default_rng([SEED, *world.encode()]))
        alarms.update({name: said.alarm for name, said in claims(cell, rows, {}).items()})
    assert max(alarms.values()) <= MOST, alarms
    for design in (SMALLEST, next(iter(DESIGNS))):
        cell = Cell(study, design, UNFAIR)
        said = claims(cell, measured(cell, np.random.default_rng(SEED)), {})
        assert all(said[name].found for name in trials.found), said
