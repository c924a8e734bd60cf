"""Group tests for many columns at once, against scipy and statsmodels' formulas, one column at a time."""

from __future__ import annotations

import numpy as np
import pytest
from metrics.groups import group_moments
from scipy import optimize, stats

from beholder.metrics.group_tests import (
    friedman,
    mean_margins,
    omega_squared,
    omega_squared_interval,
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


def test_where_groups_spread_alike_omega_squareds_bounds_invert_the_noncentral_f():
    """Against scipy's distribution, a column and a bound at a time; groups of one size and one variance."""
    rng, n = np.random.default_rng(4), 30
    noise = stats.zscore(rng.normal(size=(3, n, 7)), axis=1)
    values = (noise + np.outer([0, 1, 1], np.linspace(0, 3, 7))[:, None]).reshape(3 * n, 7)
    bounds = omega_squared_interval(group_moments(values, np.repeat(GROUPS, n), GROUPS))
    for column in range(7):
        f = stats.f_oneway(*split(values, np.repeat(GROUPS, n), column)).statistic
        for found, probability in ((bounds.low, 0.975), (bounds.high, 0.025)):

            def off(noncentrality: float, f: float = f, probability: float = probability) -> float:
                return float(stats.ncf.cdf(f, 2, 3 * n - 3, noncentrality) - probability)

            size = optimize.brentq(off, 0, 900, xtol=1e-10) if off(0) > 0 else 0.0
            assert found[column] == pytest.approx(size / (size + 3 * n), rel=1e-6, abs=1e-9)
    assert bounds.low[0] == 0
    assert bounds.low[-1] > 0.4


@pytest.mark.parametrize("sizes", [[80, 80, 80, 80], [30, 60, 90, 140]])
@pytest.mark.parametrize("spreads", [[1, 1, 1, 1], [3, 1, 1, 2]])
@pytest.mark.parametrize("effect", [0.0, 0.4, 1.5])
def test_omega_squareds_bounds_hold_the_true_share_in_95_of_100_worlds(sizes, spreads, effect):
    rng, worlds = np.random.default_rng(12), 800
    means = effect * np.array([1.0, 0.0, 0.0, -0.5])
    weight, variance = np.array(sizes) / sum(sizes), np.array(spreads) ** 2.0
    between = (weight * (means - weight @ means) ** 2).sum()
    share = between / (between + weight @ variance)
    draws = [rng.normal(m, s, (n, worlds)) for m, s, n in zip(means, spreads, sizes, strict=True)]
    names = ["a", "b", "c", "d"]
    found = omega_squared_interval(group_moments(np.concatenate(draws), np.repeat(names, sizes), names))
    covered = ((found.low <= share) & (share <= found.high)).mean()
    assert 0.92 < covered < 0.99  # 97.5 where the share is 0, which the upper bound cannot miss


def test_omega_squareds_bounds_hold_the_share_of_skewed_probabilities():
    """P(Yes) near 0, in one group twice that of the other: bounded, skewed, of unequal spread."""
    rng, worlds, n = np.random.default_rng(2), 800, 300
    one, two = rng.beta(4, 36, (n, worlds)), rng.beta(2, 38, (n, worlds))
    between, within = (0.1 - 0.05) ** 2 / 4, (0.1 * 0.9 + 0.05 * 0.95) / 41 / 2
    share = between / (between + within)
    found = omega_squared_interval(group_moments(np.concatenate([one, two]), np.repeat(["a", "b"], n), ["a", "b"]))
    assert ((found.low <= share) & (share <= found.high)).mean() > 0.92


def test_without_spread_omega_squared_has_no_bounds():
    found = omega_squared_interval(group_moments(np.full((6, 1), 0.5), np.repeat(GROUPS, 2), GROUPS))
    assert np.isnan(found).all()


def test_means_that_are_equal_have_a_share_from_0():
    values = np.array([0.2, 0.4, 0.1, 0.5, 0.3, 0.3])[:, None]
    found = omega_squared_interval(group_moments(values, np.repeat(GROUPS, 2), GROUPS))
    assert (found.low[0], found.high[0]) == (0, 0)


def test_the_overall_variance_is_that_of_all_rows(world):
    moments = group_moments(*world, GROUPS)
    np.testing.assert_allclose(moments.overall_variance, world[0].var(axis=0, ddof=1))


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


def test_a_mean_has_students_margin():
    values = np.random.default_rng(3).random(7)
    expected = stats.t.interval(0.95, 6, values.mean(), stats.sem(values))
    margin = mean_margins(np.array(7.0), np.array(values.var(ddof=1)))
    assert (values.mean() - margin, values.mean() + margin) == pytest.approx(expected)
    assert np.isnan(mean_margins(np.array(1.0), np.array(np.nan)))


def test_groups_that_each_answer_alike_have_a_share_of_1_and_no_interval() -> None:
    """Without any spread within groups the noncentral F has no end: the search for bounds went on for ever."""
    labels = np.repeat(["a", "b"], 30)
    values = np.where(labels == "a", 0.2, 0.7)[:, None] + 1e-12 * np.arange(60)[:, None]
    moments = group_moments(values, labels, ["a", "b"])
    assert omega_squared(moments)[0] == pytest.approx(1)
    assert np.isnan(omega_squared_interval(moments).low).all()
