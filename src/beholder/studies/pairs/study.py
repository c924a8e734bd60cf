"""PAIRS: when only the person changes, which answer changes? A choice between two options about the same scene."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from beholder.comparison.family import critical_value
from beholder.comparison.power import people_needed, smallest_found
from beholder.comparison.shuffles import compare_pairs
from beholder.core.options import names_of
from beholder.core.results import Row
from beholder.core.types import Fields
from beholder.datasets.dataset import Dataset
from beholder.datasets.glasshouse import PAIRS_NAME
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.pairs.measures import LABELS, pair_rows
from beholder.studies.pairs.prompts import CHOICE, pair_tasks, read_questions
from beholder.studies.pairs.tables import COMMAND
from beholder.studies.printed import Printed, Source
from beholder.studies.rows import SEED, PlanOptions, plan_rows
from beholder.studies.study import Asks, MeasureOptions, Measures, Option, Plans, Study, Tasks, Tells, read_metrics
from beholder.studies.worlds import DESIGNS, GENDER_ONLY, UNFAIR, Trial, World

METRICS = read_metrics(Path(__file__).with_name("metrics.csv"))
CHOICES = (
    "Orders: all six of two options and “unclear”, so that every option takes every place; HELM asks in one",
    "“Unclear”: an answer of its own, and half a choice for either option where options are compared",
    "Models that match pictures with texts: a statement for each option in place of the question",
    "Scenes of occupations and potential crime that HELM asks nothing about (3 of 50): left out",
)


def _tasks(questions: pl.DataFrame | None, *, statements: bool) -> Tasks:
    return lambda dataset: list(pair_tasks(questions, statements, dataset))


def pairs_study(questions: pl.DataFrame | None = None, by: Sequence[str] = ()) -> Study:
    """PAIRS with HELM's questions, or with a user's own; `by` names the labels of the people of a scene."""
    return Study(
        name="pairs",
        title="PAIRS: the same scene with another person",
        short="PAIRS",
        question="When only the person changes, which answer changes?",
        citation="Fraser and Kiritchenko, Examining Gender and Racial Bias in Large Vision-Language Models Using a "
        "Novel Dataset of Parallel Images (EACL 2024); questions with “unclear” as in HELM. Tables: Xiao and others, "
        "GenderBias-VL (2024)",
        asks=Asks(
            datasets=("pairs", PAIRS_NAME),
            tasks=_tasks(questions, statements=False),
            statements=_tasks(questions, statements=True),
            layouts=(_tasks(questions, statements=True),),
            instruction=CHOICE,
            limit_by="part",
        ),
        measures=Measures(
            functions=(partial(pair_rows, tuple(by)),), metrics=METRICS, compares=tuple(by) or LABELS, every=bool(by)
        ),
        tells=Tells(
            chapter="beholder.studies.pairs.chapter:CHAPTER",
            choices=CHOICES,
            compat="nothing: it changes nothing here",
            limitations=(
                "Scenes are judged, not people: what is found holds for scenes like these.",
                "Pictures of one scene may differ in more than the person: a generator changes details too.",
                "Favourable is the option of higher status, or the innocent one. It need not be the right one.",
            ),
            of_photographs=("Labels say what is meant to be seen. Two genders and two races stand for no more.",),
            intervals="from exchanging the people of a scene, for all parts, labels and questions together",
        ),
        plans=Plans(plan=f"{__name__}:plan", trials=f"{__name__}:TRIALS", printed=f"{__name__}:PRINTED"),
        options=OPTIONS,
        configure=configured,
        command=COMMAND,
    )


OPTIONS = (
    Option(
        "questions",
        "With pairs: own questions (a table with the columns question, first and second; and part, scenario, "
        "favourable, first_statement and second_statement, if you like).",
    ),
    Option("by", "With pairs: a label of the people of a scene (repeatable). Default: gender and race.", several=True),
)


def configured(study: Study, options: Fields) -> Study:
    """PAIRS with the user's own questions and labels."""
    questions = read_questions(options["questions"]) if "questions" in options else None
    return pairs_study(questions, names_of(options.get("by")))


PAIRS = pairs_study()
TABLE = Source("genderbias_vl", "GenderBias-VL (2024), overall table", "mean size and largest bias of pairs, 15 models")
PRINTED = Printed(Path(__file__).with_name("printed.csv"), (TABLE,))


# Planning: the smallest gap that sign flips find, from a spread that is assumed

DEVIATION, COMPARED, WORLDS = 0.2, 12, 400  # of a scene's gap; numbers in the family; worlds of each size


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """For all scenes and for each part, the smallest gap between two people that can be found."""
    table, rng = dataset.table, np.random.default_rng(SEED)
    dataset.attribute("pair")
    scenes = {"all scenes": table["pair"].n_unique()}
    if "part" in table.columns:
        scenes |= dict(table.group_by("part", maintain_order=True).agg(pl.col("pair").n_unique()).rows())
    for part, count in scenes.items():
        noise, weights = rng.normal(0, DEVIATION, (count, WORLDS)), np.full((count, WORLDS), 1 / count)
        null = compare_pairs(noise[:, :COMPARED] / count, weights[:, :COMPARED], rng)
        size = smallest_found(
            partial(_found, noise, weights, critical_value(np.sort(null.largest)), rng), options.power
        )
        note = f"{count} scenes; spread of a scene's gap assumed to be {DEVIATION:g}; one of {COMPARED} numbers"
        row = Row("plan.detectable", size, count, "probability", subset="pairs.gap", concept=part, note=note)
        known = options.effect is not None and np.isfinite(size)
        yield from plan_rows(row, count * people_needed(size, options.effect or 1.0) if known else None, options)


def _found(noise: np.ndarray, weights: np.ndarray, bar: float, rng: np.random.Generator, size: float) -> float:
    part = compare_pairs((noise + size) * weights, weights, rng, shuffles=99)
    return float((part.deviate > bar).mean())


# Tried with three questions about scenes of a woman and a man of one branch, source and race

TRIED = prompt_set(
    "made",
    [
        {"text": f"{sign} {i}", "level": f"question {i}", "concept": str(i), "template": sign}
        for i in range(3)
        for sign in "+-"
    ],
)


def _measured(world: World, options: MeasureOptions) -> Iterator[Row]:
    """Scores as the first option's lead; people of one branch and source meet in a scene, by gender and race."""
    alike = ["branch", "source", "race", "gender"]
    table = world.table.with_columns(turn=pl.col("person").rank("dense").over(alike).cast(pl.Int64))
    table = table.with_columns(pair=pl.format("{}{}{}", "branch", "source", "turn"))
    cells = np.zeros((table.height, len(TRIED), 1))
    cells[:, ::2, 0] = world.scores
    matrix = ScoreMatrix("made", table, TRIED.table, ("score",), cells)
    yield from pair_rows(LABELS, {"made": matrix}, options)


TRIALS = Trial(
    prompts=3,
    measure=_measured,
    true={GENDER_ONLY: ("pairs.gap:gender", "pairs.pairs:gender"), UNFAIR: ("pairs.",)},
    designs=tuple(name for name, design in DESIGNS.items() if design.women > 8),  # scenes of both genders, so many
    found=("pairs.gap", "pairs.pairs"),
)
