"""The true average precision of disparity's trials."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.metrics import average_precision_score

from beholder.studies.disparity.trials import true_precision


def test_the_true_average_precision_is_that_of_a_long_ranking():
    shows = np.arange(400_000) < 60_000
    scores = np.random.default_rng(1).standard_normal(400_000) + 1.5 * shows
    assert true_precision(0.15, 1.5) == pytest.approx(average_precision_score(shows, scores), abs=0.004)


def test_the_pdf_integrates_to_the_prevalence_when_nothing_is_told_apart():
    assert true_precision(0.3, 0.0) == pytest.approx(0.3, abs=1e-6)
    assert quad(norm.pdf, -8, 8)[0] == pytest.approx(1)
