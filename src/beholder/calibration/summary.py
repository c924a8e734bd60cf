"""What repetitions say of a metric: coverage, false alarms, power, bias, spread; and whether that is as promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from beholder.core.results import Row, results_table
from beholder.metrics.intervals import NONE, wilson_interval
from beholder.studies.trial import Experiment, Trial

Array = npt.NDArray[np.float64]
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


def summarise(experiments: Iterable[Experiment], outcomes: dict[str, Array]) -> list[Summary]:
    """Every trial of every experiment."""
    return [
        summary(trial, outcomes[experiment.name][:, place])
        for experiment in experiments
        for place, trial in enumerate(experiment.trials)
    ]


def summary(trial: Trial, drawn: Array) -> Summary:
    """One trial; `drawn[repetitions, 4]` holds value, low, high, p."""
    value, low, high, p_value = drawn.T
    known = value[np.isfinite(value)]
    error = float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else np.nan
    return Summary(
        trial,
        len(drawn),
        float(known.mean()) if len(known) else np.nan,
        float(known.mean() - trial.truth) if len(known) else np.nan,
        float(np.hypot(error, trial.truth_error)),
        float(known.std(ddof=1)) if len(known) > 1 else np.nan,
        float(stats.skew(known)) if len(known) > 2 and known.std() > 0 else np.nan,
        _share((low <= trial.truth) & (trial.truth <= high), np.isfinite(low) & np.isfinite(trial.truth)),
        _share(p_value <= ALPHA, np.isfinite(p_value)),
    )


def _share(hits: npt.NDArray[np.bool_], known: npt.NDArray[np.bool_]) -> Share:
    n = int(known.sum())
    if not n:
        return Share(np.nan, *NONE, 0)
    count = int(hits[known].sum())
    return Share(count / n, *wilson_interval(count, n), n)


def calibration_table(summaries: list[Summary]) -> pl.DataFrame:
    """The tidy table: `calibration.coverage` and the like, subset = metric, group = kind, concept = world."""
    rows = [row for each in summaries for row in _rows(each)]
    return results_table(rows, benchmark="calibration", model="oracle", dataset="glasshouse/oracle")


def _rows(found: Summary) -> Iterator[Row]:
    trial = found.trial
    note = f"truth {trial.truth:.6g}, effect {trial.effect:g}, n {trial.n}"

    def row(metric: str, value: float, unit: str, low: float = np.nan, high: float = np.nan, more: str = "") -> Row:
        return Row(
            f"calibration.{metric}",
            value,
            found.repetitions,
            unit,
            subset=trial.metric,
            group=trial.kind or None,
            concept=trial.setting,
            low=low,
            high=high,
            note=note + more,
        )

    calls = "false_alarms" if trial.nothing_there else "power"
    for metric, share, verdict in (
        ("coverage", found.coverage, found.coverage_verdict),
        (calls, found.called, found.alarm_verdict),
    ):
        if np.isfinite(share.value):
            why = f": {trial.exception}" if verdict == EXCEPTION and trial.exception else ""
            said = f"; {verdict}{why}" if verdict else ""
            yield row(metric, share.value, "share of repetitions", share.low, share.high, said)
    if np.isfinite(found.bias):
        margin = 1.96 * found.bias_error
        yield row("bias", found.bias, OWN, found.bias - margin, found.bias + margin)
    if np.isfinite(found.spread):
        yield row("spread", found.spread, OWN)
