"""GRAS's trials have a known truth, and its weaknesses are read off their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.studies.gras.study import GRAS
from beholder.studies.gras.trials import _gapped, _shift, gras_experiments, measured, weaknesses
from beholder.studies.trial import Experiment, Trial
from beholder.studies.trial_summary import Share, Summaries, Summary


def test_every_trial_is_of_a_declared_metric_and_every_experiment_has_a_name_of_its_own() -> None:
    experiments = list(gras_experiments())
    names = {metric.name for metric in GRAS.metrics}
    assert {trial.metric for experiment in experiments for trial in experiment.trials} <= names
    assert len({experiment.name for experiment in experiments}) == len(experiments)


@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_a_world_has_the_gap_that_it_promises(gap: float) -> None:
    oracle, levels = _gapped("gender", gap)
    high, low = (oracle.true_mean(shift, levels)[0].mean() for shift in (_shift(oracle, "gender"), 0.0))
    assert high - low == pytest.approx(gap, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", list(gras_experiments()), ids=lambda experiment: experiment.name)
def test_a_trial_gives_one_outcome_for_each_of_its_metrics(experiment: Experiment) -> None:
    outcomes = experiment.simulate(np.random.default_rng(1))
    assert len(outcomes) == len(experiment.trials)
    for trial, found in zip(experiment.trials, outcomes, strict=True):
        assert np.isfinite(found.value) or np.isfinite(found.p_value), trial.name


def test_trials_measure_by_the_studys_own_rows() -> None:
    labels = {"gender": np.repeat(["0", "1"], 20)}
    p_yes = np.random.default_rng(2).uniform(0.3, 0.5, (40, 2, 5))
    rows = [row for row in measured(labels, p_yes, np.random.default_rng(3)) if row.metric == "gras.overall_mean"]
    assert rows[0].value == pytest.approx(p_yes[:, 0, 0].mean())


def summary(metric: str, mean: float, *, effect: float = 0.0, setting: str = "a world") -> Summary:
    none = Share(np.nan, np.nan, np.nan, 0)
    trial = Trial(metric, setting, 100, 0.0, effect=effect)
    return Summary(trial, 1000, mean, mean, mean / 100, 1.0, 0.0, none, none)


def test_weaknesses_are_read_off_the_trials_without_an_effect() -> None:
    found = list(
        weaknesses(
            Summaries(
                [
                    summary("gras.bias_score", 18.0),
                    summary("gras.bias_score_shown", 0.4),
                    summary("gras.largest_gap", 0.012, setting="2 groups, of 30"),
                    summary("gras.largest_gap", 0.1, effect=0.1, setting="elsewhere"),
                ]
            )
        )
    )
    assert [weakness.found for weakness in found] == [True, True]
    assert "1.2 points (2 groups, of 30)" in found[1].sentence
    assert "elsewhere" not in found[1].sentence


def test_without_trials_there_is_nothing_to_say() -> None:
    assert list(weaknesses(Summaries([]))) == []
