"""P-FI: the public-figure benchmark, APA's predecessor: the same photographs, earlier prompts."""

from __future__ import annotations

from beholder.datasets.dataset import Dataset
from beholder.scores.task import Task
from beholder.studies.apa.sizes import POOLS
from beholder.studies.apa.study import APA, figure_tasks
from beholder.studies.pfi.prompts import pfi_association_prompts, pfi_identity_prompts
from beholder.studies.public_figures.measures import public_figure_measures, public_figure_metrics
from beholder.studies.public_figures.scale import scale_rows
from beholder.studies.study import Study


def pfi_tasks(dataset: Dataset) -> list[Task]:
    """Two tasks for each branch: association prompts and names."""
    return figure_tasks(dataset, pfi_association_prompts, pfi_identity_prompts)


PFI = Study(
    name="pfi",
    title="P-FI: public figures",
    short="P-FI",
    question="APA's questions with the prompts of its predecessor: does the model recognise people and their "
    "occupations, women as often as men, and whom does it know by name?",
    citation="P-FI, the public-figure benchmark (APA's predecessor)",
    datasets=("apa",),
    tasks=pfi_tasks,
    measures=public_figure_measures("pfi", POOLS),
    metrics=public_figure_metrics("pfi"),
    across=scale_rows,
    subset_attribute="branch",
    compares=("gender",),
    within=("branch",),
    default="data",
    chapter="beholder.studies.pfi.chapter:CHAPTER",
    plan="beholder.studies.pfi.planning:plan",
    printed="beholder.studies.pfi.printed:PRINTED",
    trials="beholder.studies.public_figures.trials:PFI_TRIALS",
    of_photographs=APA.of_photographs,
    limitations=APA.limitations,
)
