"""Gaps between groups against plain loops, and how often intervals for the widest of many cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.group_gaps import (
    Pictures,
    clustered_moments,
    critical_value,
    group_gaps,
    normal_scale,
    rank_p_values,
    student_scale,
)


def plain_variance(values: np.ndarray, people: np.ndarray) -> float:
    """Of a mean, from people's summed deviations, written out."""
    sums = [sum(x - values.mean() for x, who in zip(values, people, strict=True) if who == one) for one in set(people)]
    count = len(sums)
    return count / (count - 1) * sum(s**2 for s in sums) / len(values) ** 2


def test_moments_are_those_of_a_plain_loop_over_people_and_cells() -> None:
    rng = np.random.default_rng(1)
    people, cells = np.repeat(np.arange(12), 3), rng.integers(-1, 3, (2, 36))
    values = rng.normal(size=(36, 2))
    values[4, 1] = np.nan
    found = Pictures(values, people).moments(cells, 3)
    for k in range(2):
        for cell in range(3):
            for column in range(2):
                rows = (cells[k] == cell) & ~np.isnan(values[:, column])
                mine, who = values[rows, column], people[rows]
                assert found.size[k, cell, column] == len(mine)
                assert found.people[k, cell, column] == len(set(who))
                assert found.mean[k, cell, column] == pytest.approx(mine.mean())
                assert found.variance[k, cell, column] == pytest.approx(plain_variance(mine, who))


def test_without_repeated_people_the_moments_are_the_ordinary_ones() -> None:
    values = np.random.default_rng(2).normal(size=(20, 3))
    found = clustered_moments(values, np.zeros(20, dtype=int), ["all"], np.arange(20))
    np.testing.assert_allclose(found.variance[0], values.var(axis=0, ddof=1))
    np.testing.assert_array_equal(found.size[0], 20)


def test_t_values_on_the_normal_scale_keep_their_probability() -> None:
    freedom = np.array([4.0, 10.0, 60.0, np.inf])
    t = stats.t.isf(0.001, freedom)
    np.testing.assert_allclose(normal_scale(t, freedom), stats.norm.isf(0.001), rtol=0.02)
    np.testing.assert_allclose(normal_scale(student_scale(3.0, freedom), freedom), 3.0)


def test_a_gap_has_welchs_error_and_the_rank_of_its_widest_pair() -> None:
    rng = np.random.default_rng(3)
    codes, values = np.repeat(np.arange(3), (10, 20, 30)), rng.normal(size=(60, 2))
    values[codes == 2, 0] += 3
    gaps = group_gaps(values, codes, 3, rng, 199)
    higher, lower = gaps.widest()
    pair = gaps.pair(higher, lower)
    means = np.array([[values[codes == g, c].mean() for c in range(2)] for g in range(3)])
    np.testing.assert_array_equal(higher, means.argmax(axis=0))
    np.testing.assert_allclose(pair.gap, means.max(axis=0) - means.min(axis=0))
    first, second = values[codes == higher[0], 0], values[codes == lower[0], 0]
    welch = stats.ttest_ind(first, second, equal_var=False)
    margin = float(student_scale(gaps.critical, np.array(welch.df))) * (pair.gap[0] / welch.statistic)
    assert (pair.low[0], pair.high[0]) == pytest.approx((pair.gap[0] - margin, pair.gap[0] + margin))
    assert (pair.p_value[0], bool(pair.at_most[0])) == (pytest.approx(1 / 200), True)
    assert pair.p_value[1] > 0.05


def test_p_values_are_ranks_times_the_number_of_tests_and_agree_with_the_critical_value() -> None:
    shuffled = np.sort(np.random.default_rng(4).normal(size=399))
    for tests in (1, 4):
        edge = critical_value(shuffled, tests)
        p_values, at_most = rank_p_values(np.array([edge, np.nextafter(edge, 9), 99.0]), shuffled, tests)
        assert p_values[0] > 0.05 >= p_values[1]
        assert (p_values[2], bool(at_most[2])) == (pytest.approx(tests / 400), True)
    assert critical_value(shuffled[:5]) == np.inf, "five shuffles cannot show anything at 0.05"


def test_groups_are_compared_at_the_same_mix_of_strata() -> None:
    """Only the stratum moves the value, and the groups have other mixes of it."""
    rng = np.random.default_rng(15)
    codes, strata = np.repeat([0, 0, 1, 1], (80, 20, 20, 80)), np.repeat([0, 1, 0, 1], (80, 20, 20, 80))
    values = strata[:, None] + rng.normal(0, 0.1, (200, 1))
    crude, adjusted = (group_gaps(values, codes, 2, rng, 199, strata=own) for own in (None, strata))
    assert crude.pair(*crude.widest()).gap[0] == pytest.approx(0.6, abs=0.1)
    by_hand = [
        np.mean([values[(codes == g) & (strata == s)].mean() for s in (0, 1)])
        for g in (0, 1)  # strata of 100 each
    ]
    np.testing.assert_allclose(adjusted.groups.mean[:, 0], by_hand)
    assert adjusted.pair(*adjusted.widest()).p_value[0] > 0.05


def test_pictures_of_one_person_do_not_make_a_difference_sure() -> None:
    """Twenty people in two groups, thirty equal pictures each: one by one they would show any difference."""
    rng, false = np.random.default_rng(6), np.zeros(2)
    people, codes = np.repeat(np.arange(20), 30), np.repeat(np.arange(20) % 2, 30)
    for _ in range(20):
        values = rng.normal(size=20)[people][:, None] + rng.normal(0, 0.1, (600, 1))
        for k, who in enumerate((people, None)):
            gaps = group_gaps(values, codes, 2, rng, 99, people=who)
            false[k] += gaps.pair(*gaps.widest()).p_value[0] <= 0.05
    assert false[0] <= 3
    assert false[1] >= 12


def test_equal_values_have_neither_gap_nor_p_value() -> None:
    gaps = group_gaps(np.full((30, 1), 0.1), np.repeat([0, 1], 15), 2, np.random.default_rng(7), 99)
    pair = gaps.pair(*gaps.widest())
    assert pair.gap[0] == 0
    assert np.isnan(pair.p_value[0])


def test_groups_that_each_answer_alike_differ_for_sure() -> None:
    values = np.repeat([0.2, 0.7], 15)[:, None]
    gaps = group_gaps(values, np.repeat([0, 1], 15), 2, np.random.default_rng(8), 99)
    pair = gaps.pair(*gaps.widest())
    assert (pair.gap[0], pair.low[0], pair.p_value[0]) == pytest.approx((0.5, 0.5, 0.01))


@pytest.mark.slow
def test_the_widest_of_many_is_covered_as_promised() -> None:
    """Thirty columns with one true gap: an interval made for one pair covers the picked one far too seldom."""
    rng, covered, alone = np.random.default_rng(9), 0, 0
    for _ in range(100):
        codes = np.repeat(np.arange(4), (15, 30, 30, 60))
        values = rng.normal(size=(135, 30)) + 0.3 * codes[:, None]
        gaps = group_gaps(values, codes, 4, rng, 99)
        higher, lower = gaps.widest()
        pair = gaps.pair(higher, lower)
        top = int(pair.gap.argmax())
        truth = 0.3 * (higher[top] - lower[top])
        covered += pair.low[top] <= truth <= pair.high[top]
        first, second = values[codes == higher[top], top], values[codes == lower[top], top]
        low, high = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
        alone += low <= truth <= high
    assert covered >= 92
    assert alone < 80
