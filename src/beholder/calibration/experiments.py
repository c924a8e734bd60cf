"""Every experiment of the default set, by name."""

from __future__ import annotations

from functools import cache

from beholder.calibration.sampled_prompts import prompt_experiments
from beholder.core.catalog import Catalog
from beholder.core.errors import UnknownName
from beholder.studies.disparity.confidence_trials import confidence_experiments
from beholder.studies.disparity.trials import precision_experiments
from beholder.studies.gras.intersection_trials import intersection_experiments
from beholder.studies.gras.trials import trait_experiments
from beholder.studies.perception.effect_trials import effect_experiments
from beholder.studies.perception.trials import judgement_experiments
from beholder.studies.public_figures.trials import figure_experiments
from beholder.studies.trial import Experiment

MAKERS = (
    figure_experiments,
    trait_experiments,
    intersection_experiments,
    judgement_experiments,
    effect_experiments,
    precision_experiments,
    confidence_experiments,
    prompt_experiments,
)


@cache
def experiments() -> Catalog[Experiment]:
    """All of them, in the order of the studies."""
    found = [experiment for make in MAKERS for experiment in make()]
    return Catalog("experiment", {experiment.name: experiment for experiment in found})


def chosen_experiments(metrics: list[str]) -> list[Experiment]:
    """Those with a trial of one of these metrics (`gras.largest_gap`, or `gras` for all of GRAS's); all for none."""
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
