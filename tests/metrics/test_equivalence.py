"""Two one-sided tests say what scipy's one-sided tests say, and four verdicts are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from metrics.groups import group_moments
from scipy import stats

from beholder.metrics.group_tests import (
    DIFFERENCE,
    EQUIVALENT,
    SMALL,
    UNDECIDED,
    ratio_equivalence,
    verdict,
    welch_equivalence,
)
from beholder.metrics.intervals import Resampler, mean_estimate, ratio_estimate


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def two_one_sided(a: np.ndarray, b: np.ndarray, delta: float) -> float:
    above = stats.ttest_ind(a + delta, b, equal_var=False, alternative="greater").pvalue
    below = stats.ttest_ind(a - delta, b, equal_var=False, alternative="less").pvalue
    return float(max(above, below))


def test_two_groups_agree_with_scipys_one_sided_welch():
    values, labels = rng().normal(0, 1, (60, 3)), np.array(["a"] * 25 + ["b"] * 35)
    found = welch_equivalence(group_moments(values, labels, ["a", "b"]), 0.6)
    expected = [two_one_sided(column[:25], column[25:], 0.6) for column in values.T]
    assert found.p_value == pytest.approx(expected)


def test_of_several_groups_the_worst_pair_decides():
    values, labels = rng().normal(0, 1, (90, 1)), np.repeat(list("abc"), 30)
    values[labels == "c"] += 0.3
    found = welch_equivalence(group_moments(values, labels, list("abc")), 1.0)
    parts = [values[labels == name, 0] for name in "abc"]
    pairs = [two_one_sided(parts[i], parts[j], 1.0) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert found.p_value[0] == pytest.approx(max(pairs))


def test_the_bound_is_the_smallest_delta_that_would_be_shown():
    moments = group_moments(rng().normal(0, 1, (60, 1)), np.repeat(["a", "b"], 30), ["a", "b"])
    bound = float(welch_equivalence(moments, 0.5).bound[0])
    assert welch_equivalence(moments, bound).p_value[0] == pytest.approx(0.05)


def ratio(n: int, factor: float, *, turned: bool = False):
    women, men = rng(3).beta(8, 2, n) * factor, rng(4).beta(8, 2, n)
    means = [mean_estimate(v, Resampler(np.arange(n), rng(5 + i), 2000)) for i, v in enumerate((women, men))]
    return ratio_estimate(*means[:: -1 if turned else 1])


def test_a_ratio_is_shown_to_be_near_1_only_with_people_enough():
    assert ratio_equivalence(ratio(400, 1.0), 0.1).p_value <= 0.05
    assert ratio_equivalence(ratio(10, 1.0), 0.1).p_value > 0.05
    assert ratio_equivalence(ratio(400, 0.7), 0.1).p_value > 0.5


def test_the_bound_of_a_ratio_is_a_delta():
    found = ratio(200, 0.97)
    bound = float(ratio_equivalence(found, 0.1).bound)
    assert ratio_equivalence(found, bound).p_value == pytest.approx(0.05, abs=0.003)


@pytest.mark.slow
def test_a_bias_of_delta_is_called_none_in_at_most_5_of_100():
    """The error that matters: the true difference is δ itself."""
    generator, called = rng(9), 0
    labels = np.repeat(["a", "b"], 60)
    for _ in range(1000):
        values = generator.normal(0, 1, (120, 1))
        values[:60] += 0.5
        called += welch_equivalence(group_moments(values, labels, ["a", "b"]), 0.5).p_value[0] <= 0.05
    assert called / 1000 <= 0.065


def test_four_verdicts():
    assert verdict(0.01, 0.9) == DIFFERENCE
    assert verdict(0.01, 0.01) == SMALL
    assert verdict(0.9, 0.01) == EQUIVALENT
    assert verdict(0.9, 0.9) == verdict(float("nan"), None) == UNDECIDED


def test_a_ratio_turned_over_is_as_near_to_1():
    for delta in (0.1, 0.2):
        one, other = (ratio_equivalence(ratio(60, 0.9, turned=turned), delta) for turned in (False, True))
        np.testing.assert_allclose(one, other)
