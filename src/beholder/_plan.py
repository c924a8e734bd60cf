"""Before a run: which studies fit a data set, and how large an effect each can show with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from beholder.core.errors import BeholderError, UnknownName, UsageError
from beholder.core.results import results_table
from beholder.core.tables import column_in
from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset
from beholder.datasets.survey import columns_of
from beholder.studies import STUDIES
from beholder.studies.inquiry import DataChoice, default_dataset
from beholder.studies.rows import PlanOptions
from beholder.studies.study import Study


def plan(name: str, options: PlanOptions) -> pl.DataFrame:
    """`plan.detectable` for every comparison of a study, and `plan.images_needed` where an effect is named.

    Images that are there are counted; where none is, those that the data set's table names.
    """
    known = [each for each in STUDIES if STUDIES[each].plans.plan]
    if name not in known:
        raise UnknownName("study to plan", name, known)
    study = STUDIES[name]
    if not options.dataset and not study.asks.datasets:
        raise UsageError(f"{name} has no data of its own: add --dataset NAME or folder:PATH.")
    dataset = load_dataset(options.dataset or default_dataset(study, options.data), options.data)
    here = replace(dataset, partial=True).present()
    planned = _planned(study, here if len(here) else dataset, options)
    if planned.is_empty():
        raise UsageError(f"{name} cannot be planned on {dataset.name}: {_nothing_to_compare(study, dataset)}.")
    note = pl.format("{}; none of these images is there: counted in the table", "note")
    return planned if len(here) else planned.with_columns(note=note)


def _planned(study: Study, dataset: Dataset, options: PlanOptions) -> pl.DataFrame:
    rows = list(study.part("plan")(dataset, options))
    return results_table(rows, study=study.name, model="plan", dataset=dataset.name)


class Fit(NamedTuple):
    """Whether a study can be asked on a data set."""

    study: str
    fits: bool
    why: str  # what it compares there, or what is missing
    detectable: pl.DataFrame | None = None  # the plan, if it fits


def fitting_studies(dataset: Dataset) -> list[Fit]:
    """Every study that a model is audited with."""
    return [fit(study, dataset) for study in STUDIES.values() if study.measures.functions]


def fit(study: Study, dataset: Dataset) -> Fit:
    """Whether the study has something to compare here."""
    try:
        study.asks.tasks(dataset)
        planned = _planned(study, dataset, PlanOptions()) if study.plans.plan else None
    except BeholderError as error:
        return Fit(study.name, False, str(error).partition("\n")[0])
    if planned is None:
        return Fit(study.name, True, "its tasks can be scored; it has no plan")
    wanted = [column_in(dataset.table, name) for name in study.measures.compares]
    if wanted:
        planned = planned.filter(pl.col("concept").str.split(" × ").list.eval(pl.element().is_in(wanted)).list.all())
    planned = planned.filter(pl.col("verdict").is_null())
    compared = planned["concept"].unique(maintain_order=True).to_list()
    if compared:
        return Fit(study.name, True, f"compares by {', '.join(compared)}", planned)
    return Fit(study.name, False, _nothing_to_compare(study, dataset))


def _nothing_to_compare(study: Study, dataset: Dataset) -> str:
    """Why there are no two groups."""
    wanted = [column_in(dataset.table, name) for name in study.measures.compares or dataset.attributes]
    columns = [each for each in columns_of(dataset) if each.name in wanted]
    if not columns:
        by, has = " or ".join(study.measures.compares) or "an attribute", ", ".join(dataset.attributes) or "none"
        return f"it compares people by {by}, and the columns are: {has}"
    return f"it takes two groups of at least five people ({'; '.join(f'{each.name}: {each.how}' for each in columns)})"


def uncompared(results: pl.DataFrame, studies: Iterable[Study], choice: DataChoice) -> Iterator[str]:
    """For each study that compared no two groups: why. A first look at a few images (`limit`) may be like that."""
    for study in studies:
        paired = [metric.name for metric in study.measures.metrics if metric.paired]
        rows = results.filter(pl.col("study") == study.name)
        if not paired or rows.filter(pl.col("metric").is_in(paired), pl.col("value").is_not_null()).height:
            continue
        dataset = load_dataset(choice.dataset or default_dataset(study, choice.data), choice.data, choice.settings)
        own = fit(study, dataset)
        if (study.measures.compares and choice.limit is None) or not own.fits:
            why = "too few of its images have a score" if own.fits else own.why
            yield f"{study.name}: no two groups of {dataset.name} were compared: {why}."
