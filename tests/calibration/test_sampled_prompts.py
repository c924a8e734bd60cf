"""Prompts as a sample: resampling images alone gives intervals that are too narrow."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.calibration.sampled_prompts import prompt_experiments


def test_the_true_mean_is_that_of_many_worlds():
    (experiment,) = prompt_experiments()
    values = [experiment.simulate(np.random.default_rng(seed))[0].value for seed in range(60)]
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert np.mean(values) == pytest.approx(experiment.trials[0].truth, abs=4 * error)


def test_drawing_prompts_too_widens_the_interval_around_the_same_value():
    (experiment,) = prompt_experiments()
    both, images = experiment.simulate(np.random.default_rng(1))
    assert both.value == images.value
    assert both.high - both.low > 1.5 * (images.high - images.low)


def test_only_the_interval_of_images_alone_is_a_known_exception():
    (experiment,) = prompt_experiments()
    assert [bool(trial.exception) for trial in experiment.trials] == [False, True]
