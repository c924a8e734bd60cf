"""Weaknesses are told of the trials in which nothing was planted."""

from __future__ import annotations

import numpy as np

from beholder.studies.perception.weaknesses import weaknesses
from beholder.studies.trial import Trial
from beholder.studies.trial_summary import Share, Summaries, Summary


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
