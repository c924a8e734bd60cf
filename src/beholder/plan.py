"""Plan: before a run, how large an effect each metric can show with this data set and these groups."""

from __future__ import annotations

import polars as pl

from beholder.core.errors import UnknownName
from beholder.core.results import results_table
from beholder.datasets import open_dataset
from beholder.studies import STUDIES
from beholder.studies.planning import PlanOptions
from beholder.studies.sheets import default_dataset


def plan(name: str, options: PlanOptions) -> pl.DataFrame:
    """`plan.detectable` for every comparison of a study, and `plan.images_needed` where an effect is named."""
    known = [each for each in STUDIES if STUDIES[each].plan]
    if name not in known:
        raise UnknownName("benchmark to plan", name, known)
    study = STUDIES[name]
    dataset = open_dataset(options.dataset or default_dataset(study, options.data), options.data)
    rows = list(study.part("plan")(dataset, options))
    return results_table(rows, benchmark=name, model="plan", dataset=dataset.name)
