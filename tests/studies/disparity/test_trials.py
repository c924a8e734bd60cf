"""Disparity's trials: true values, and worlds that are what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.metrics import average_precision_score

from beholder.studies.disparity.trials import many_experiments, true_precision, world


def test_the_true_average_precision_is_that_of_a_long_ranking():
    shows = np.arange(400_000) < 60_000
    scores = np.random.default_rng(1).standard_normal(400_000) + 1.5 * shows
    assert true_precision(0.15, 1.5) == pytest.approx(average_precision_score(shows, scores), abs=0.004)


def test_the_pdf_integrates_to_the_prevalence_when_nothing_is_told_apart():
    assert true_precision(0.3, 0.0) == pytest.approx(0.3, abs=1e-6)
    assert quad(norm.pdf, -8, 8)[0] == pytest.approx(1)


def test_worlds_of_many_concepts_give_every_outcome():
    """Unequal pools and prevalences; one repetition of each, measured by the study's own code."""
    for experiment in many_experiments():
        outcomes = experiment.simulate(np.random.default_rng(1))
        assert len(outcomes) == len(experiment.trials)
        for trial, outcome in zip(experiment.trials, outcomes, strict=True):
            assert np.isfinite([outcome.value, outcome.p_value]).any(), trial.name


def test_confidence_of_a_world_is_right_for_all_images_together():
    shares = [(0.1, 0.3)] * 400
    data, confidence = world(np.random.default_rng(2), shares, 0.0, 0.7)
    for low, high in ((0.05, 0.15), (0.4, 0.6), (0.8, 1.0)):
        inside = (confidence > low) & (confidence <= high)
        assert data.present[inside].mean() == pytest.approx(confidence[inside].mean(), abs=0.01)
    women = data.codes == 1
    inside = (confidence > 0.4) & (confidence <= 0.6)
    assert data.present[women][inside[women]].mean() > 0.6  # but not for the group that shows it more often
