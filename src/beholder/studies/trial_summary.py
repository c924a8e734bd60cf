"""What repetitions of a trial say: coverage, false alarms, power, bias, spread; and whether that is as promised."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beholder.studies.trial import Trial

ALPHA, ENOUGH, ENOUGH_REPETITIONS = 0.05, 100, 1000
COVERAGE, FALSE_ALARMS = (0.93, 0.97), 0.06
"""What is promised of 95 % intervals with at least 100 images a group, and of corrected tests."""
OWN = "the metric's own"
HOLDS, EXCEPTION, FAILS, NOT_PROMISED = "holds", "known exception", "fails", "not promised"


class Share(NamedTuple):
    """A share of repetitions with Wilson's interval; NaN where nothing could be counted."""

    value: float
    low: float
    high: float
    n: int


def _within(share: Share, low: float, high: float) -> bool:
    """Whether a share keeps its bounds; of fewer than 1,000 repetitions, whether it is not shown to break them."""
    if share.n >= ENOUGH_REPETITIONS:
        return low <= share.value <= high
    return share.low <= high and low <= share.high


class Summary(NamedTuple):
    """One trial over all its repetitions; NaN for what it does not have."""

    trial: Trial
    repetitions: int
    mean: float
    bias: float
    bias_error: float
    spread: float
    skewness: float
    coverage: Share
    called: Share
    """p ≤ 0.05: false alarms where nothing is there, power where something is."""

    @property
    def coverage_verdict(self) -> str:
        """Whether the interval covers as promised."""
        if np.isnan(self.coverage.value):
            return ""
        low, high = COVERAGE
        return self._judged(_within(self.coverage, low, high), self.trial.n >= ENOUGH)

    @property
    def alarm_verdict(self) -> str:
        """Whether false alarms are as rare as promised."""
        if np.isnan(self.called.value) or not self.trial.nothing_there:
            return ""
        return HOLDS if _within(self.called, 0.0, FALSE_ALARMS) else FAILS

    def _judged(self, kept: bool, promised: bool) -> str:
        if kept:
            return HOLDS
        if self.trial.exception or self.trial.kind in COMPARED:
            return EXCEPTION
        return FAILS if promised else NOT_PROMISED


COMPARED = ("percentile", "accelerated", "pictures as if people", "images drawn")
"""Kinds of interval that are there for comparison: no benchmark gives them."""


# Weaknesses


class Weakness(NamedTuple):
    """What a reader of a metric must know, and whether the repetitions bear it out."""

    metric: str
    title: str
    sentence: str
    found: bool


class Summaries:
    """Summaries of trials, to look things up in."""

    def __init__(self, summaries: list[Summary]) -> None:
        self._all = summaries

    def where(self, metric: str, *, kind: str = "", setting: str = "", key: str | None = None) -> list[Summary]:
        """Those of a metric and kind with that key, or whose world is described so."""
        return [
            each
            for each in self._all
            if each.trial.metric == metric and each.trial.kind == kind and setting in each.trial.setting
            if key is None or each.trial.key == key
        ]

    def one(self, metric: str, *, kind: str = "", setting: str = "", key: str | None = None) -> Summary | None:
        """The first of them, if there is one."""
        return next(iter(self.where(metric, kind=kind, setting=setting, key=key)), None)
