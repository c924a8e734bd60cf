"""Refusals are compared between groups as scipy compares tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.core.errors import UsageError
from beholder.metrics.refusals import refusal_difference

NAMES = np.array(["woman"] * 12 + ["man"] * 20)
REFUSED = np.array([1.0] * 7 + [0.0] * 5 + [1.0] * 3 + [0.0] * 17)


def test_two_groups_agree_with_scipys_fisher():
    found = refusal_difference(REFUSED, NAMES)
    assert found.p_value == pytest.approx(stats.fisher_exact([[3, 17], [7, 5]]).pvalue)
    assert (found.highest, found.lowest) == ("woman", "man")
    assert found.gap == pytest.approx(7 / 12 - 3 / 20)
    assert (found.refused, found.n) == ({"man": 3, "woman": 7}, {"man": 20, "woman": 12})


def test_more_groups_agree_with_scipys_chi_square():
    rng = np.random.default_rng(3)
    names = rng.choice(["a", "b", "c"], 300)
    refused = (rng.random(300) < np.where(names == "a", 0.5, 0.3)).astype(float)
    table = [[refused[names == g].sum(), (1 - refused[names == g]).sum()] for g in "abc"]
    found = refusal_difference(refused, names)
    assert found.p_value == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)
    assert found.note is None


def test_the_order_of_answers_and_absent_ones_do_not_matter():
    order = np.random.default_rng(1).permutation(len(NAMES))
    refused = np.append(REFUSED[order], np.nan)
    assert refusal_difference(refused, np.append(NAMES[order], "other")) == refusal_difference(REFUSED, NAMES)


def test_highest_and_lowest_go_by_share_and_not_by_name():
    found = refusal_difference(np.array([0, 0, 1, 1, 1, 0]), np.array(list("aabbcc")))
    assert (found.highest, found.lowest, found.gap) == ("b", "a", 1.0)


@pytest.mark.parametrize(("refused", "rough"), [(15, False), (14, True)])
def test_expected_counts_of_five_are_enough(refused: int, rough: bool):
    """Three groups of 30, refused evenly: each is expected `refused / 3` times among the refused."""
    marks = np.zeros(90)
    marks[np.arange(refused) * 6] = 1
    found = refusal_difference(marks, np.repeat(list("abc"), 30))
    assert (found.note is not None) is rough
    assert found.test == "chi-square test"


def test_a_rough_p_value_says_so():
    found = refusal_difference(np.array([1, 0, 0, 0, 1, 0]), np.array(list("aabbcc")))
    assert "rough" in str(found.note)


@pytest.mark.parametrize(
    ("refused", "groups", "note"),
    [
        ([0, 0], ["a", "b"], "no answer was refused"),
        ([1, 1], ["a", "b"], "all answers were refused"),
        ([1, 0], ["a", "a"], "only one group"),
    ],
)
def test_where_there_is_nothing_to_compare_there_is_no_p_value(refused: list[int], groups: list[str], note: str):
    found = refusal_difference(np.array(refused), np.array(groups))
    assert found.p_value is None
    assert note in str(found.note)


@pytest.mark.parametrize(
    ("refused", "groups", "told"),
    [
        ([0.5, 1], ["a", "b"], "0 or 1"),
        ([[1, 0]], ["a", "b"], "one length"),
        ([1], ["a", "b"], "one length"),
        ([np.nan], ["a"], "no answers"),
    ],
)
def test_what_cannot_be_compared_is_refused(refused: list[float], groups: list[str], told: str):
    with pytest.raises(UsageError, match=told):
        refusal_difference(np.array(refused), np.array(groups))


def test_alike_groups_raise_no_alarm_too_often():
    rng = np.random.default_rng(9)
    names = np.repeat(["a", "b"], 40)
    alarms = [refusal_difference(rng.random(80) < 0.3, names).p_value < 0.05 for _ in range(300)]
    assert np.mean(alarms) <= 0.06
