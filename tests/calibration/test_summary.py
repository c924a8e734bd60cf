"""Summaries: coverage, false alarms and power, as numbers and as rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.calibration.summary import calibration_table, summary
from beholder.studies.trial import Trial
from beholder.studies.trial_summary import EXCEPTION, FAILS, HOLDS, NOT_PROMISED


def drawn(covered: int, called: int, of: int = 1000) -> np.ndarray:
    """Outcomes around a truth of 0: so many intervals hold it, so many p-values are small."""
    low = np.where(np.arange(of) < covered, -1.0, 0.5)
    p_value = np.where(np.arange(of) < called, 0.01, 0.5)
    return np.stack([np.zeros(of), low, np.ones(of), p_value], axis=1)


@pytest.mark.parametrize(
    ("covered", "n", "exception", "verdict"),
    [
        (950, 100, "", HOLDS),
        (920, 100, "", FAILS),
        (980, 100, "", FAILS),
        (920, 30, "", NOT_PROMISED),
        (500, 100, "x", EXCEPTION),
    ],
)
def test_coverage_is_held_against_the_promise(covered: int, n: int, exception: str, verdict: str):
    result = summary(Trial("m", "w", n, 0.0, exception=exception), drawn(covered, 50))
    assert result.coverage.value == covered / 1000
    assert result.coverage_verdict == verdict


def test_few_repetitions_break_no_promise_that_they_cannot_judge():
    trial = Trial("m", "w", 100, 0.0)
    assert summary(trial, drawn(36, 2, of=40)).coverage_verdict == HOLDS
    assert summary(trial, drawn(20, 2, of=40)).coverage_verdict == FAILS


def test_calls_are_false_alarms_or_power():
    table = calibration_table(
        [summary(Trial("m", "w", 100, 0.0, effect=effect), drawn(950, 70)) for effect in (0.0, 0.5)]
    )
    rates = table.filter(pl.col("metric").is_in(["calibration.false_alarms", "calibration.power"]))
    assert rates["metric"].to_list() == ["calibration.false_alarms", "calibration.power"]
    assert rates["value"].to_list() == [0.07, 0.07]
    assert "fails" in rates["note"][0]
