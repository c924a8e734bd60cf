"""Trials of causal effects: the planted values are the truth, and a repetition gives an outcome for every trial."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.studies.perception.effect_trials import effect_experiments
from beholder.studies.perception.oracle import SMILE_BONUS


def test_every_trial_has_an_outcome_near_its_truth():
    (experiment,) = effect_experiments()
    outcomes = experiment.simulate(np.random.default_rng(1))
    assert len(outcomes) == len(experiment.trials) == 7
    for trial, outcome in zip(experiment.trials, outcomes, strict=True):
        if trial.metric == "perception.causal_effect":
            assert outcome.value == pytest.approx(trial.truth, abs=0.006)
            assert outcome.low < outcome.value < outcome.high
    assert experiment.trials[-1].truth == -SMILE_BONUS


def test_light_is_the_only_attribute_without_an_effect():
    (experiment,) = effect_experiments()
    null = [trial.setting for trial in experiment.trials if trial.truth == 0]
    assert len(null) == 2
    assert all("lighting" in setting for setting in null)
