"""Trials: when a call is a false alarm, and rows as outcomes."""

from __future__ import annotations

import math

import pytest

from beholder.core.results import Row
from beholder.studies.trial import Outcome, Trial, outcome


@pytest.mark.parametrize(
    ("effect", "null", "nothing_there"), [(0.0, None, True), (0.1, None, False), (0.0, False, False), (0.1, True, True)]
)
def test_a_call_is_a_false_alarm_without_an_effect_unless_the_trial_says_otherwise(
    effect: float, null: bool | None, nothing_there: bool
):
    assert Trial("m", "w", 100, 0.0, effect=effect, null=null).nothing_there == nothing_there


def test_a_trial_is_named_by_metric_kind_and_world():
    assert Trial("s.gap", "24 women, 76 men", 24, 0.0).name == "s.gap · 24 women, 76 men"
    assert Trial("s.gap", "a world", 24, 0.0, kind="percentile").name == "s.gap · percentile · a world"


def test_what_a_row_does_not_have_is_not_a_number():
    assert outcome(Row("s.gap", 0.2, 9, "x", low=0.1, high=0.3, p_value=0.0)) == Outcome(0.2, 0.1, 0.3, 0.0)
    value, low, high, p_value = outcome(Row("s.gap", 0.0, 9, "x"))
    assert value == 0.0
    assert all(map(math.isnan, (low, high, p_value)))
    assert math.isnan(outcome(Row("s.gap", None, 0, "x")).value)
