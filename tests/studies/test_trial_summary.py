"""Verdicts on coverage and false alarms, and summaries looked up by metric, kind and world."""

from __future__ import annotations

import math
from typing import Any

import pytest

from beholder.metrics.intervals import wilson_interval
from beholder.studies.trial import Trial
from beholder.studies.trial_summary import EXCEPTION, FAILS, HOLDS, NOT_PROMISED, Share, Summaries, Summary

NOTHING = Share(math.nan, math.nan, math.nan, 0)


def share(count: int, of: int = 1000) -> Share:
    return Share(count / of, *wilson_interval(count, of), of)


def summary(covered: Share = NOTHING, called: Share = NOTHING, **trial: Any) -> Summary:
    made = Trial(**{"metric": "m", "setting": "w", "n": 100, "truth": 0.0, **trial})
    return Summary(made, 1000, 0.0, 0.0, 0.0, 1.0, 0.0, covered, called)


@pytest.mark.parametrize(
    ("covered", "trial", "verdict"),
    [
        (share(930), {}, HOLDS),
        (share(970), {}, HOLDS),
        (share(929), {}, FAILS),
        (share(971), {}, FAILS),
        (share(900), {"n": 99}, NOT_PROMISED),
        (share(900), {"exception": "skewed"}, EXCEPTION),
        (share(900), {"kind": "percentile"}, EXCEPTION),
        (share(950), {"exception": "skewed"}, HOLDS),
        (share(36, 40), {}, HOLDS),
        (share(20, 40), {}, FAILS),
        (NOTHING, {}, ""),
    ],
)
def test_coverage_is_judged_by_its_bounds_its_images_and_known_exceptions(
    covered: Share, trial: dict[str, Any], verdict: str
):
    assert summary(covered, **trial).coverage_verdict == verdict


@pytest.mark.parametrize(
    ("called", "trial", "verdict"),
    [
        (share(60), {}, HOLDS),
        (share(61), {}, FAILS),
        (share(0), {}, HOLDS),
        (share(61), {"exception": "skewed"}, FAILS),
        (share(500), {"effect": 0.1}, ""),
        (share(500), {"effect": 0.1, "null": True}, FAILS),
        (share(3, 20), {}, HOLDS),
        (NOTHING, {}, ""),
    ],
)
def test_false_alarms_are_judged_only_where_nothing_is_there(called: Share, trial: dict[str, Any], verdict: str):
    assert summary(called=called, **trial).alarm_verdict == verdict


def test_summaries_are_found_by_metric_kind_and_part_of_the_world():
    first, second = summary(setting="2 groups of 30"), summary(setting="2 groups of 100")
    known = Summaries([first, second, summary(kind="percentile"), summary(metric="m.other")])
    assert known.where("m") == [first, second]
    assert known.where("m", setting="of 100") == [second]
    assert known.one("m", kind="percentile") is not None
    assert known.one("nothing") is None
