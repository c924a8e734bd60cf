"""Worlds of known truth, and which claims are true there."""

from __future__ import annotations

import numpy as np

from beholder.studies.worlds import GENDER_ONLY, UNFAIR, Design, Trial, draw


def test_a_wholly_unfair_model_is_certain_of_every_woman_and_no_man():
    world = draw(UNFAIR, Design(2, 2), 2, np.random.default_rng(0))
    assert world.scores[:, 0].tolist() == [4.0, 4.0, -4.0, -4.0]


def test_only_what_is_true_in_a_world_may_be_said_there():
    trials = Trial(1, lambda world, options: (), {GENDER_ONLY: ("gras.gap:gender",)})
    assert [trials.may_say("gras.gap", name, GENDER_ONLY) for name in ("gender", "race")] == [True, False]
    assert trials.may_say("gras.gap", "race", UNFAIR)
