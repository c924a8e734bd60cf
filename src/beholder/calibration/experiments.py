"""Every experiment of the default set, by name."""

from __future__ import annotations

from functools import cache

from beholder.calibration.sampled_prompts import prompt_experiments
from beholder.core.catalog import Catalog
from beholder.core.errors import UnknownName
from beholder.studies import STUDIES
from beholder.studies.trial import Experiment


@cache
def experiments() -> Catalog[Experiment]:
    """All of them, in the order of the studies."""
    makers = [make for study in STUDIES.values() if (make := study.part("trials"))]
    found = [experiment for make in (*makers, prompt_experiments) for experiment in make()]
    return Catalog("experiment", {experiment.name: experiment for experiment in found})


def chosen_experiments(metrics: list[str]) -> list[Experiment]:
    """Those with a trial of one of these metrics (by name, or all of a study by its name); all for none."""
    known = {trial.metric for experiment in experiments().values() for trial in experiment.trials}
    for metric in metrics:
        if not any(_named(name, metric) for name in known):
            raise UnknownName("metric with a calibration", metric, known)
    return [
        experiment
        for experiment in experiments().values()
        if not metrics or any(_named(t.metric, metric) for t in experiment.trials for metric in metrics)
    ]


def _named(metric: str, asked: str) -> bool:
    return metric == asked or metric.startswith(f"{asked}.")
