"""Own prompts on any data set: how a model divides its belief among the prompts of a user, group by group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison import People, groups_of, people_of, strata_of
from beholder.comparison.power import Scores
from beholder.core.results import Row
from beholder.core.types import Fields
from beholder.datasets.dataset import Dataset
from beholder.datasets.survey import columns_of
from beholder.metrics.association import correct_rank, correct_share, first, softmax
from beholder.metrics.intervals import Resampler
from beholder.prompts.prompt_set import PromptSet, correct_cells, prompt_set, read_prompts
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.studies.custom.gaps import Column, Family, gap_metrics
from beholder.studies.rows import Planned, PlanOptions, detectable_rows, join, mean_row
from beholder.studies.study import Asks, Matrices, MeasureOptions, Measures, Option, Plans, Study, Tells, read_metrics

PROMPTS = 10
SCORES = Scores(0.25, mean=0.5)  # of a prompt's share of belief, between people: assumed
SOURCE = f"spread of a prompt's share of belief assumed to be {SCORES.deviation:g}, and its mean {SCORES.mean:g}"


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """For every column with groups, the smallest gap of one prompt among ten that can be found.

    Labels that are spread unequally over the groups are what an audit should compare within, so it is planned so.
    """
    people = people_of(dataset.table, options.person)
    kinds = {each.name: each.role for each in columns_of(dataset) if each.name != people.column}
    columns = [name for name, role in kinds.items() if role in ("groups", "numbers")]
    every = groups_of(dataset.table, columns)
    labels = pl.DataFrame({each.attribute: each.labels() for each in every})
    planned = []
    for groups in every:
        uneven = [each.column for each in groups.large(people).balance(labels, people, labels.columns)]
        strata = strata_of(labels, groups.large(people), uneven, people)
        planned.append(Planned("custom.gap", groups, SCORES, SOURCE, strata=strata, columns=PROMPTS, rests=True))
    yield from detectable_rows(planned, people, options)


# Own prompts on any data set

METRICS = (*read_metrics(Path(__file__).with_name("metrics.csv")), *gap_metrics())


QUESTION = "How does the model divide its belief among these prompts, group by group?"
LIMITATIONS = (
    "Probabilities are shares among the prompts offered together. Other prompts give other shares.",
    "The interval of a group's mean is its own. Differences are judged by gaps, whose intervals and p-values hold for "
    "all prompts, groups and attributes together. Groups of fewer than five people are not compared.",
    "Groups may differ in what the data does not say, or in labels that they were not compared within (--within).",
)
AMONG = ("custom.probability", "custom.association", "custom.association_top1")
ALONE = {"presence": "custom.presence", "P(Yes)": "custom.p_yes"}  # of a prompt by itself, by what the model gives


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
        asks=Asks(datasets=(), tasks=tasks),
        measures=Measures(functions=(partial(_measure, tuple(by)),), metrics=METRICS, compares=tuple(by)),
        tells=Tells(chapter="beholder.studies.custom.chapter:CHAPTER", limitations=LIMITATIONS),
        plans=Plans(plan="beholder.studies.custom.study:plan", trials="beholder.studies.custom.trials:TRIALS"),
        options=OPTIONS,
        configure=configured,
    )


OPTIONS = (
    Option("prompts", "Your own prompts (CSV or Parquet with a column 'text') in place of a study's.", chooses=True),
    Option("by", "With --prompts: an attribute whose groups are compared (repeatable).", str, several=True),
)


def configured(study: Study, options: Fields) -> Study:
    """A study of the user's own prompts."""
    return custom_study(read_prompts(options["prompts"]), by=options.get("by", ()))


def _measure(by: tuple[str, ...], matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Means for everyone and by group; then how far groups lie apart."""
    matrix = matrices["custom"]
    groups, everything, people = groups_of(matrix.images, by), [], people_of(matrix.images, options.person)
    for level in matrix.prompts["level"].unique(maintain_order=True).to_list():
        columns = list(_columns(matrix.level(level), level))
        everything += columns
        scored = np.asarray(~np.isnan(np.stack([column.values for column in columns])).all(axis=0))
        yield from _mean_rows(columns, scored, people, options)
        for each in groups:
            for group in each.names:
                for row in _mean_rows(columns, scored & each.mask(group), people, options):
                    yield row._replace(subset=each.attribute, group=group)
    if everything and by:
        yield from Family(everything, matrix.images, by, options).rows()


def _mean_rows(
    columns: Sequence[Column], mask: npt.NDArray[np.bool_], people: People, options: MeasureOptions
) -> Iterator[Row]:
    if not mask.any():
        return
    resampler = Resampler(people.codes[mask], options.rng(), options.draws)
    prompts = sum(column.metric == AMONG[0] for column in columns)
    for column in columns:
        values = column.values[mask]
        if column.metric in AMONG[1:] and np.isnan(values).all():
            continue
        row = mean_row(column.metric, values, resampler)
        among = f"among the {prompts} prompts of level '{column.level}'" if column.metric in AMONG else None
        chance = 1 / prompts if column.metric == AMONG[0] else None
        row = row._replace(concept=column.concept, template=column.level)
        yield row._replace(chance=chance, note=join((row.note, among)))


def _columns(matrix: ScoreMatrix, level: str) -> Iterator[Column]:
    """What is measured of the prompts of a level: a value for each image, NaN for one without all scores."""
    whole = matrix.complete_rows()
    places = pl.Series(matrix.images["image_id"]).is_in(whole.images["image_id"].implode()).to_numpy()
    cells, concepts = whole.quantity("ranking"), whole.prompts["concept"]
    made: list[tuple[str, str, npt.NDArray[np.float64]]] = []
    if cells.unit in ALONE:  # each prompt by itself: a detector's presence, or P(yes) of a model that answers in words
        made += [(ALONE[cells.unit], concept, cells.cells[:, j]) for j, concept in enumerate(concepts)]
    if whole.gives("logit"):  # how belief is divided; the concepts of a detector do not compete
        shares, correct = softmax(whole.logits), correct_cells(whole.prompts, whole.images)
        made += [("custom.probability", concept, shares[:, j]) for j, concept in enumerate(concepts)]
        if correct.any():
            made.append(("custom.association", level, correct_share(shares, correct)))
            made.append(("custom.association_top1", level, first(correct_rank(shares, correct))))
    for metric, concept, own in made:
        values = np.full(matrix.images.height, np.nan)
        values[places] = own
        yield Column(metric, concept, level, values)


CUSTOM = custom_study(prompt_set("prompts", []))
