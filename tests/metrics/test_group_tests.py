"""Group tests for many columns at once, against scipy and statsmodels' formulas, one column at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.group_tests import (
    friedman,
    group_moments,
    omega_squared,
    repeated_measures_anova,
    welch,
    welch_anova,
    welch_t,
)

GROUPS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def world() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    labels = rng.choice(GROUPS, 120, p=[0.5, 0.3, 0.2])
    values = rng.beta(2, 3, (120, 8)) + 0.05 * (labels == "c")[:, None] * np.arange(8)
    return values, labels


def split(values: np.ndarray, labels: np.ndarray, column: int, groups=GROUPS) -> list[np.ndarray]:
    found = [values[labels == group, column] for group in groups]
    return [part[~np.isnan(part)] for part in found]


def test_moments_equal_the_obvious_ones(world):
    moments = group_moments(*world, GROUPS)
    for column in range(8):
        for place, part in enumerate(split(*world, column)):
            assert moments.size[place, column] == len(part)
            assert moments.mean[place, column] == pytest.approx(part.mean(), rel=1e-13)
            assert moments.variance[place, column] == pytest.approx(part.var(ddof=1), rel=1e-11)
    np.testing.assert_allclose(moments.overall, world[0].mean(axis=0))


def test_variances_keep_their_digits_far_from_zero():
    values = 1e6 + np.random.default_rng(0).random((50, 1))
    moments = group_moments(values, np.array(["a"] * 25 + ["b"] * 25), ["a", "b"])
    assert moments.variance[0, 0] == pytest.approx(values[:25].var(ddof=1), rel=1e-6)


def test_welch_anova_agrees_with_scipy(world):
    result = welch_anova(group_moments(*world, GROUPS))
    for column in range(8):
        expected = stats.f_oneway(*split(*world, column), equal_var=False)
        assert result.statistic[column] == pytest.approx(expected.statistic, rel=1e-10)
        assert result.p_value[column] == pytest.approx(expected.pvalue, rel=1e-8)


def test_welch_t_agrees_with_scipy_sign_included(world):
    result = welch_t(group_moments(*world, ["a", "b"]))
    for column in range(8):
        expected = stats.ttest_ind(*split(*world, column, ["a", "b"]), equal_var=False)
        assert result.statistic[column] == pytest.approx(expected.statistic, rel=1e-10)
        assert result.p_value[column] == pytest.approx(expected.pvalue, rel=1e-8)


def test_missing_cells_count_for_nothing(world):
    values, labels = world[0].copy(), world[1]
    values[np.random.default_rng(1).random(values.shape) < 0.1] = np.nan
    result = welch(group_moments(values, labels, GROUPS))
    for column in range(8):
        expected = stats.f_oneway(*split(values, labels, column), equal_var=False)
        assert result.p_value[column] == pytest.approx(expected.pvalue, rel=1e-8)


def test_two_groups_are_tested_with_t(world):
    moments = group_moments(*world, ["a", "b"])
    np.testing.assert_array_equal(welch(moments).statistic, welch_t(moments).statistic)


def test_omega_squared_equals_its_definition(world):
    found = omega_squared(group_moments(*world, GROUPS))
    for column in range(8):
        parts = split(*world, column)
        whole = np.concatenate(parts)
        between = sum(len(p) * (p.mean() - whole.mean()) ** 2 for p in parts)
        error = sum(((p - p.mean()) ** 2).sum() for p in parts) / (len(whole) - 3)
        total = ((whole - whole.mean()) ** 2).sum()
        assert found[column] == pytest.approx((between - 2 * error) / (total + error), rel=1e-9)


def test_omega_squared_is_zero_on_average_without_a_difference():
    rng = np.random.default_rng(3)
    found = omega_squared(group_moments(rng.random((200, 400)), rng.choice(GROUPS, 200), GROUPS))
    assert abs(found.mean()) < 0.001


@pytest.fixture(scope="module")
def ratings() -> np.ndarray:
    rng = np.random.default_rng(8)
    return np.round(rng.random((40, 6, 5)) + 0.1 * np.arange(5), 1)  # with ties


def test_friedman_agrees_with_scipy_ties_included(ratings):
    result = friedman(ratings)
    for column in range(6):
        expected = stats.friedmanchisquare(*ratings[:, column].T)
        assert result.statistic[column] == pytest.approx(expected.statistic, rel=1e-10)
        assert result.p_value[column] == pytest.approx(expected.pvalue, rel=1e-8)


def test_repeated_measures_anova_equals_a_two_way_table(ratings):
    result = repeated_measures_anova(ratings)
    for column in range(6):
        table = ratings[:, column]
        n, k = table.shape
        wording = n * ((table.mean(axis=0) - table.mean()) ** 2).sum()
        rows = k * ((table.mean(axis=1) - table.mean()) ** 2).sum()
        error = ((table - table.mean()) ** 2).sum() - wording - rows
        f = (wording / (k - 1)) / (error / ((k - 1) * (n - 1)))
        assert result.statistic[column] == pytest.approx(f, rel=1e-10)
        assert result.p_value[column] == pytest.approx(stats.f.sf(f, k - 1, (k - 1) * (n - 1)), rel=1e-8)


def test_a_group_of_one_gives_no_test_rather_than_a_wrong_one():
    values = np.array([[0.1], [0.2], [0.9]])
    assert np.isnan(welch(group_moments(values, np.array(["a", "a", "b"]), ["a", "b"])).p_value).all()
