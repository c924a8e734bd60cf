"""Families: bounds cover the widest of many, p is never smaller than that of one number alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.core.results import Row
from beholder.metrics.clustered import CellMeans, Spread
from beholder.studies.perception.families import family


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_family_of_one_has_students_interval_and_p():
    error, free, value = 0.5, 7.0, np.array([1.4])
    found = family(value, Spread(np.array([[error**2]]), np.array([free])), rng())
    margin = stats.t.ppf(0.975, free) * error
    assert found.high[0] - 1.4 == pytest.approx(margin, rel=0.06)
    assert found.p_value[0] == pytest.approx(2 * stats.t.sf(1.4 / error, free), abs=0.01)


def test_independent_numbers_have_the_widths_of_bonferroni_and_equal_ones_those_of_one():
    apart = family(np.zeros(24), Spread(np.eye(24), np.full(24, 1e6)), rng())
    assert apart.high[0] == pytest.approx(stats.norm.ppf(1 - 0.025 / 24), rel=0.04)
    alike = family(np.zeros(24), Spread(np.ones((24, 24)), np.full(24, 1e6)), rng())
    assert alike.high[0] == pytest.approx(1.96, rel=0.05)


def test_a_number_without_spread_or_with_too_few_people_has_no_bounds():
    found = family(np.ones(3), Spread(np.diag([0.0, 1.0, 1.0]), np.array([5.0, np.nan, 5.0])), rng())
    assert np.isnan(found.low[:2]).all()
    assert np.isfinite(found.low[2])
    assert found.row(0, Row("perception.gap", None, 3, "cosine")).p_at_most is None


def test_the_widest_of_24_equal_gaps_is_covered():
    """With the interval of each gap alone it would be in 30 to 40 of 100."""
    inside = alone = 0
    for seed in range(100):
        draw = rng(seed)
        values = draw.normal(size=(80, 24)) + 0.3 * np.repeat([1, 0], 40)[:, None]
        means, weights = CellMeans(values, np.repeat([0, 1], 40), np.arange(80), 2), np.array([[1.0, -1.0]])
        sums = means.combined(weights)
        found = family(sums.value, means.spread(weights), draw)
        widest = int(np.abs(found.value).argmax())
        inside += found.low[widest] <= 0.3 <= found.high[widest]
        alone += sums.low[0, widest] <= 0.3 <= sums.high[0, widest]
    assert inside >= 90  # 95 expected
    assert alone < 60
