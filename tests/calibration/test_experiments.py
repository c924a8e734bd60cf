"""Every study's experiments, chosen by metric."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.calibration.experiments import chosen_experiments, experiments
from beholder.core.errors import UnknownName
from beholder.studies.trial import Experiment, Outcome


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_metric_without_calibration_is_refused():
    with pytest.raises(UnknownName, match="metric with a calibration"):
        chosen_experiments(["apa.bias_ration"])


def test_every_experiment_gives_an_outcome_for_each_of_its_trials():
    for experiment in experiments().values():
        assert isinstance(experiment, Experiment)
        outcomes = experiment.simulate(rng())
        assert len(outcomes) == len(experiment.trials), experiment.name
        assert all(isinstance(outcome, Outcome) for outcome in outcomes)


def test_a_study_chooses_all_of_its_metrics_and_no_name_chooses_everything():
    of_study = {trial.metric for experiment in chosen_experiments(["disparity"]) for trial in experiment.trials}
    assert all(metric.startswith("disparity.") for metric in of_study)
    assert len(of_study) > 1
    assert chosen_experiments([]) == list(experiments().values())
