"""What repetitions say of a metric: coverage, false alarms, power, bias, spread; and whether that is as promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from beholder.core.results import Row, results_table
from beholder.metrics.intervals import NONE, wilson_interval
from beholder.studies.trial import Experiment, Trial
from beholder.studies.trial_summary import ALPHA, EXCEPTION, OWN, Share, Summary

Array = npt.NDArray[np.float64]


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


def _rows(result: Summary) -> Iterator[Row]:
    trial = result.trial
    note = f"truth {trial.truth:.6g}, effect {trial.effect:g}, n {trial.n}"

    def row(metric: str, value: float, unit: str, low: float = np.nan, high: float = np.nan, more: str = "") -> Row:
        return Row(
            f"calibration.{metric}",
            value,
            result.repetitions,
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
        ("coverage", result.coverage, result.coverage_verdict),
        (calls, result.called, result.alarm_verdict),
    ):
        if np.isfinite(share.value):
            why = f": {trial.exception}" if verdict == EXCEPTION and trial.exception else ""
            said = f"; {verdict}{why}" if verdict else ""
            yield row(metric, share.value, "share of repetitions", share.low, share.high, said)
    if np.isfinite(result.bias):
        margin = 1.96 * result.bias_error
        yield row("bias", result.bias, OWN, result.bias - margin, result.bias + margin)
    if np.isfinite(result.spread):
        yield row("spread", result.spread, OWN)
