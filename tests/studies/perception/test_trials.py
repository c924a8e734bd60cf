"""Trials of causal effects have the planted values as their truth; weaknesses are told of worlds without effect."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.studies.perception.oracle import SMILE_BONUS
from beholder.studies.perception.trials import effect_experiments, weaknesses
from beholder.studies.trial import Trial
from beholder.studies.trial_summary import Share, Summaries, Summary


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


def summary(trial: Trial, mean: float) -> Summary:
    share = Share(0.95, 0.93, 0.97, 1000)
    return Summary(trial, 1000, mean, mean - trial.truth, 0.0001, 0.01, 0.0, share, share)


def test_absolute_differences_are_told_of_the_attribute_without_effect():
    trials = [
        summary(Trial(f"perception.{metric}", setting, 100, truth), mean)
        for setting, truth, mean, metric in (
            ("gender", 0.005, 0.02, "absolute_difference"),
            ("gender", 0.005, 0.005, "causal_effect"),
            ("light", 0.0, 0.0175, "absolute_difference"),
            ("light", 0.0, 0.0001, "causal_effect"),
        )
    ]
    (weakness,) = weaknesses(Summaries(trials))
    assert weakness.found
    assert "are 1.75 apart" in weakness.sentence


def test_ndkl_is_told_of_the_world_without_preference():
    trials = [
        summary(Trial("perception.ndkl", "a", 100, 0.2, effect=0.5), 0.2),
        summary(Trial("perception.ndkl", "b", 100, 0.01), 0.012),
    ]
    (weakness,) = weaknesses(Summaries(trials))
    assert "0.012 nats" in weakness.sentence
    assert np.isfinite(trials[1].mean)
