"""Chapters: one for every benchmark and data set of a run, with all a reader needs to judge its numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import polars as pl

from beholder.chapter.phrases import drawn
from beholder.chapter.table import Table
from beholder.report.facts import limited
from beholder.report.tables import tables
from beholder.run import Run
from beholder.studies import BENCHMARKS
from beholder.studies.custom.study import LIMITATIONS, QUESTION
from beholder.studies.custom.study import METRICS as CUSTOM_METRICS
from beholder.studies.disparity.planted import disparity_planted
from beholder.studies.gras.planted import gras_planted
from beholder.studies.gras.tables import gras_standing
from beholder.studies.perception.planted import perception_planted
from beholder.studies.perception.tables import perception_standing
from beholder.studies.public_figures.planted import planted_table
from beholder.studies.public_figures.published_rank import PUBLISHED_ON, standing_table
from beholder.studies.study import MetricInfo

DRAWN_LIMITATIONS = (
    "The people are drawn: what a model makes of drawings need not hold for photographs of anyone.",
    "Two gender presentations are drawn, woman and man; others are not represented.",
)
STANDINGS = {"gras": gras_standing, "perception": perception_standing}
"""How a benchmark stands beside what was published, where it is not result by result."""
PLANTED = {"gras": gras_planted, "perception": perception_planted, "disparity": disparity_planted}
"""The same for what was planted in the reference models."""


class Chapter(NamedTuple):
    """A benchmark on a data set: question, results, what they mean, what they cannot say."""

    name: str
    dataset: str
    title: str
    question: str
    study: str
    results: pl.DataFrame
    tables: list[Table]
    metrics: dict[str, MetricInfo]
    limitations: list[str]
    standing: Table | None = None
    planted: Table | None = None


def chapters(run: Run) -> list[Chapter]:
    """In the order of the results."""
    parts = run.results.group_by(["benchmark", "dataset"], maintain_order=True)
    return [_chapter(str(name), str(dataset), part, run) for (name, dataset), part in parts]


def _chapter(name: str, dataset: str, part: pl.DataFrame, run: Run) -> Chapter:
    title, question, study, metrics, limitations = _declared(name, run, drawn=drawn(dataset))
    measured = set(part["metric"])
    return Chapter(
        name,
        dataset,
        title,
        question,
        study,
        part,
        tables(part, name),
        {metric: info for metric, info in metrics.items() if metric in measured},
        [*limitations, *_of_this_run(part, run)],
        STANDINGS.get(name, standing_table)(part),
        PLANTED.get(name, planted_table)(part),
    )


def _declared(name: str, run: Run, *, drawn: bool) -> tuple[str, str, str, dict[str, MetricInfo], tuple[str, ...]]:
    """What the benchmark says of itself: as it came with Beholder, or as the run keeps it of a user's own."""
    said = run.record.declared.get(name) or _known(name)
    title = said["title"]
    if drawn and BENCHMARKS.came_with_beholder(name):
        title = f"{title.partition(':')[0]}'s questions in the embedded world"
    limits = (*(DRAWN_LIMITATIONS if drawn else said["of_photographs"]), *said["limitations"])
    metrics = {metric: MetricInfo(**info) for metric, info in said["metrics"].items()}
    return title, said["question"], said["study"], metrics, limits


def _known(name: str) -> dict[str, Any]:
    """What is known of a benchmark by its name alone: one of ours, or a user's own prompts."""
    if name in BENCHMARKS:
        return BENCHMARKS[name].declaration()
    return {
        "title": "Own prompts" if name == "custom" else name,
        "question": QUESTION,
        "study": "",
        "limitations": LIMITATIONS,
        "of_photographs": (),
        "metrics": {metric: asdict(info) for metric, info in CUSTOM_METRICS.items()},
    }


def _of_this_run(part: pl.DataFrame, run: Run) -> list[str]:
    """Limits that come from how this run was made."""
    said = []
    ratios = part.filter(pl.col("metric").str.ends_with("bias_ratio")).height
    if ratios > 1:
        said.append(
            f"Each of the {ratios} ratios has its own 95 % interval: even if nothing were there, "
            f"about one in twenty would exclude 1."
        )
    if limited(run.record):
        said.append("Only a part of the images was looked at; finding a name among fewer names is easier.")
    if part["dataset"][0] == PUBLISHED_ON and run.record.settings.get("compat"):
        said.append("Computed as the released scripts do: values, not intervals, carry their rounding and faults.")
    return said
