"""The known weaknesses speak of trials that exist."""

from __future__ import annotations

from beholder.studies.disparity.trials import confidence_setting, disparity_experiments, precision_setting, weaknesses
from beholder.studies.trial_summary import Summaries


def test_the_settings_of_weaknesses_are_settings_of_trials():
    settings = {trial.setting for experiment in disparity_experiments() for trial in experiment.trials}
    assert {precision_setting(400, (0.4, 0.15), 0.0), confidence_setting((900, 150))} <= settings


def test_without_trials_no_weakness_is_claimed():
    assert list(weaknesses(Summaries([]))) == []
