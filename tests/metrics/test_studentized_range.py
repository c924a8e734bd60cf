"""The quantile of the widest pair against scipy's, and against draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.studentized_range import widest_pair_quantile


@pytest.mark.parametrize(
    ("groups", "freedom"), [(2, 1), (2, 3.7), (3, 2), (5, 11), (7, 1.3), (10, 22), (10, 300), (40, 9)]
)
def test_it_is_scipys(groups: int, freedom: float):
    expected = stats.studentized_range.ppf(0.95, groups, freedom) / np.sqrt(2)
    assert widest_pair_quantile(groups, freedom) == pytest.approx(expected, rel=3e-3)


def test_with_two_groups_it_is_students_and_the_normal_one():
    freedoms = np.array([1.0, 4.0, 30.0])
    assert widest_pair_quantile(2, freedoms) == pytest.approx(stats.t.ppf(0.975, freedoms), rel=1e-3)
    assert widest_pair_quantile(2) == pytest.approx(stats.norm.ppf(0.975), rel=1e-4)


def test_the_widest_pair_is_allowed_to_be_the_widest():
    """Seven equal groups: with Tukey's quantile the widest pair is called different as seldom as promised."""
    means = np.random.default_rng(4).standard_normal((20_000, 7))
    share = (np.ptp(means, axis=1) > widest_pair_quantile(7) * np.sqrt(2)).mean()
    assert share == pytest.approx(0.05, abs=0.006)
