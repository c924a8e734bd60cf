"""Own prompts on any data set: how a model divides its belief among the prompts of a user, group by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.metrics.association import correct_rank, correct_share, first, softmax
from beholder.metrics.bootstrap import Resampler
from beholder.prompts.prompt_set import PromptSet, correct_cells, prompt_set, read_prompts
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.task import Task
from beholder.studies.rows import join, mean_row, people_shown
from beholder.studies.study import Matrices, MeasureOptions, Option, Study, read_metrics

METRICS = read_metrics(Path(__file__).with_name("metrics.csv"))


QUESTION = "How does the model divide its belief among these prompts, group by group?"
LIMITATIONS = ("Probabilities are shares among the prompts offered together. Other prompts give other shares.",)
AMONG = ("custom.probability", "custom.association", "custom.association_top1")
ALONE = {"presence": "custom.presence", "P(Yes)": "custom.p_yes"}
"""Metrics of a prompt by itself, by what the model gives."""
Column = tuple[str, str, npt.NDArray[np.float64]]
"""Metric, concept, and one value for each image."""


def custom_study(prompts: PromptSet, *, by: Sequence[str] = ()) -> Study:
    """A study of a user's prompts; `by` names the attributes whose groups are compared."""

    def tasks(dataset: Dataset) -> list[Task]:
        for name in by:
            dataset.attribute(name)
        correct_cells(prompts.table, dataset.table)  # refuses a rule about an attribute that does not exist
        return [Task("custom", dataset, prompts)]

    return Study(
        name="custom",
        title=f"Own prompts: {prompts.name}" if len(prompts) else "Own prompts",
        short="Own prompts",
        question=QUESTION,
        citation="",
        datasets=(),
        tasks=tasks,
        measures=(partial(_measure, tuple(by)),),
        metrics=METRICS,
        limitations=LIMITATIONS,
        options=OPTIONS,
        configure=configured,
        chapter="beholder.studies.custom.chapter:CHAPTER",
        upgrade="beholder.studies.custom.old_runs:upgraded",
    )


OPTIONS = (
    Option("prompts", "Your own prompts (CSV or Parquet with a column 'text') in place of a study's.", chooses=True),
    Option("by", "With --prompts: an attribute whose groups are compared (repeatable).", str, several=True),
)


def configured(study: Study, options: Mapping[str, Any]) -> Study:
    """A study of the user's own prompts."""
    return custom_study(read_prompts(options["prompts"]), by=options.get("by", ()))


def _measure(by: tuple[str, ...], matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    matrix = matrices["custom"]
    for level in matrix.prompts["level"].unique(maintain_order=True).to_list():
        part = matrix.level(level).complete_rows()
        for attribute, group, mask in _groups(part.images, by):
            yield from _rows(part.rows(mask), level, attribute, group, options)


def _groups(
    images: pl.DataFrame, by: tuple[str, ...]
) -> Iterator[tuple[str | None, str | None, npt.NDArray[np.bool_]]]:
    """Everyone, then each group of each attribute."""
    yield None, None, np.ones(images.height, dtype=bool)
    for attribute in by:
        values = images[attribute].cast(pl.String)
        for group in sorted(values.drop_nulls().unique(), key=_by_size):
            yield attribute, group, (values == group).fill_null(False).to_numpy()


def _by_size(group: str) -> tuple[float, str]:
    """Numbers by their size, then words: 2 before 10."""
    try:
        return float(group), group
    except ValueError:
        return float("inf"), group


def _rows(
    matrix: ScoreMatrix, level: str, attribute: str | None, group: str | None, options: MeasureOptions
) -> Iterator[Row]:
    if not matrix.images.height:
        return
    resampler = Resampler(people_shown(matrix.images), options.rng(), options.draws)
    note = f"among the {matrix.prompts.height} prompts of level '{level}'"
    for metric, concept, values in [*_alone(matrix), *_among(matrix, level)]:
        row = mean_row(metric, values, resampler)
        notes = (row.note, note if metric in AMONG else None)
        yield row._replace(subset=attribute, group=group, concept=concept, template=level, note=join(notes))


def _alone(matrix: ScoreMatrix) -> Iterator[Column]:
    """Each prompt by itself: a detector's presence, or P(yes) of a model that answers in words."""
    cells = matrix.quantity("ranking")
    if cells.unit in ALONE:
        for column, concept in enumerate(matrix.prompts["concept"]):
            yield ALONE[cells.unit], concept, cells.cells[:, column]


def _among(matrix: ScoreMatrix, level: str) -> Iterator[Column]:
    """How belief is divided among the prompts of a level; the concepts of a detector do not compete."""
    if not matrix.gives("logit"):
        return
    shares, correct = softmax(matrix.logits), correct_cells(matrix.prompts, matrix.images)
    yield from (("custom.probability", concept, shares[:, j]) for j, concept in enumerate(matrix.prompts["concept"]))
    if correct.any():
        yield "custom.association", level, correct_share(shares, correct)
        yield "custom.association_top1", level, first(correct_rank(shares, correct))


CUSTOM = custom_study(prompt_set("prompts", []))
