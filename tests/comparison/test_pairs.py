"""Pairs: what two models differ in is found, noise is not, and few people tell nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from beholder.comparison.family import judge
from beholder.comparison.shuffles import _estimates, compare_pairs


def paired(differences: np.ndarray, seed: int = 0, shuffles: int = 999):
    """Means of differences of people, who all count alike."""
    weights = np.full(differences.shape, 1 / len(differences))
    return judge([compare_pairs(differences * weights, weights, np.random.default_rng(seed), shuffles)])[0]


def test_the_error_of_people_who_count_alike_is_that_of_a_paired_t_test():
    differences = np.random.default_rng(1).normal(0.3, 1, (40, 1))
    value, error, _ = _estimates(np.ones((1, 40)), differences / 40, np.full((40, 1), 1 / 40))
    assert value[0, 0] / error[0, 0] == pytest.approx(ttest_1samp(differences[:, 0], 0).statistic)


def test_noise_is_seldom_found_among_many_numbers():
    found = [paired(np.random.default_rng(seed).normal(size=(20, 12)), seed, 199).found.any() for seed in range(60)]
    assert np.mean(found) <= 0.15


def test_a_difference_without_any_spread_is_found_and_its_interval_has_a_width():
    judged = paired(np.full((10, 3), 0.5))
    assert judged.found.all()
    assert (judged.low < 0.5).all()
    assert (judged.low > 0).all()


def test_a_number_that_five_people_move_tells_nothing():
    differences = np.random.default_rng(3).normal(5, 0.1, (20, 2))
    weights = np.full(differences.shape, 1 / 20)
    weights[:, 1] = np.repeat([0.2, 0.0], [5, 15])
    judged = judge([compare_pairs(differences * weights, weights, np.random.default_rng(0), 999)])[0]
    assert judged.found.tolist() == [True, False]
    assert np.isnan(judged.p_value[1])
