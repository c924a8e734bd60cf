"""Classics: three contrastive tests that everybody cites. CLIP's labels on faces, Berg's retrieval, iEAT on images."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from beholder.comparison.groups import people_of, strata_of
from beholder.comparison.power import Scores
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.datasets.selection import Selection
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix, Task, between_pictures
from beholder.studies.classics.classes import COMPARED, class_rows, compared_groups
from beholder.studies.classics.images import image_rows, tested
from beholder.studies.classics.prompts import DRAWN, FACES, Classes, ImageTest, retrieval_prompts
from beholder.studies.classics.retrieval import retrieval_rows
from beholder.studies.printed import Printed, Source
from beholder.studies.rows import Planned, PlanOptions, detectable_rows
from beholder.studies.study import Asks, Matrices, MeasureOptions, Measures, Option, Plans, Study, Tells, read_metrics
from beholder.studies.worlds import GENDER_ONLY, Trial, World

IMAGES, LABELS, RETRIEVAL = "pictures against pictures", "labels", "retrieval"
DATA, DRAWN_DATA = ("fairface", "ieat", "glasshouse"), "glasshouse"
METRICS = read_metrics(Path(__file__).with_name("metrics.csv"))
WHY = (
    "Words that hurt: CLIP's authors offered their model words for criminals and for animals as labels of people, to "
    "see whom it gives them to. Whoever builds on such a model must know, so the study asks again. No such word is "
    "true of anybody. This page does not write them out; --show-words does."
)
CHOICES = (
    f"The wording of CLIP's classes, which § 7.1 does not print: “{FACES.templates['a photo of']}”, with a or an",
    "First choices that are level: they share the picture",
    "MaxSkew's k where 1,000 is more than half of what is ranked: 100, else half",
)


def classics_study(*, words: bool = False) -> Study:
    """The three tests; `words`: also each hurtful word by itself."""

    def tasks(dataset: Dataset, templates: int | None = None) -> list[Task]:
        if dataset.name == "ieat":
            return [between_pictures(IMAGES, dataset)]
        if dataset.name == DRAWN_DATA:
            at_work = (dataset.table["occupation"] != "").arg_true().to_list()
            dataset = dataset.selected(Selection(at_work, (), len(dataset)))
            return [Task(LABELS, dataset, DRAWN.prompts(show_words=words)), between_pictures(IMAGES, dataset)]
        labels = Task(LABELS, dataset, FACES.prompts(show_words=words, templates=templates))
        return [labels] if templates else [labels, Task(RETRIEVAL, dataset, retrieval_prompts(show_words=words))]

    def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
        if LABELS in matrices:
            yield from class_rows(matrices[LABELS], _design(matrices[LABELS]), options, words=words)
        if RETRIEVAL in matrices:
            yield from retrieval_rows(matrices[RETRIEVAL], options)
        if IMAGES in matrices:
            yield from image_rows(matrices[IMAGES], options)

    return Study(
        name="classics",
        title="Classics: labels, retrieval and image tests",
        short="Classics",
        question="Whom does the model give labels that hurt, whom does it retrieve for which words, and which pictures "
        "does it put close together?",
        citation="Radford and others, Learning transferable visual models from natural language supervision (2021), "
        "§ 7.1; Berg and others, A prompt array keeps the bias away (2022); Steed and Caliskan, Image representations "
        "learned with unsupervised pre-training contain human-like biases (2021)",
        asks=Asks(DATA, partial(tasks, templates=1), tasks, all_datasets=True, belief=True, limit_by="race"),
        measures=Measures(functions=(measure,), metrics=METRICS, compares=COMPARED),
        tells=Tells(
            chapter="beholder.studies.classics.chapter:CHAPTER",
            choices=CHOICES,
            compat="iEAT's one-sided p of each test alone, in place of one that holds for all tests",
            limitations=(
                WHY,
                "A first choice is among the labels offered: other lists and templates give other shares, and the "
                "table of movement says how far.",
                "iEAT's categories hold a few pictures each; what else tells them apart is not controlled. Its data is "
                "for non-commercial use (CC BY-NC-SA 4.0) and is not part of Beholder.",
            ),
            of_photographs=("Race, gender and age are perceived labels, not what people say of themselves.",),
        ),
        plans=Plans(plan=f"{__name__}:plan", trials=f"{__name__}:TRIALS", printed=f"{__name__}:PRINTED"),
        options=OPTIONS,
        configure=lambda study, given: classics_study(words=bool(given.get("show_words"))),
    )


def _design(matrix: ScoreMatrix) -> Classes:
    return DRAWN if matrix.dataset is not None and matrix.dataset.name == DRAWN_DATA else FACES


OPTIONS = (Option("show_words", "With classics: write out the words that hurt, and count each by itself.", bool),)
CLASSICS = classics_study()


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """Which gap in the share of a category can be found: all attributes, categories and lists are one family."""
    people, every, planned = people_of(dataset.table, options.person), compared_groups(dataset.table), []
    labels = pl.DataFrame({groups.attribute: groups.labels() for groups in every})
    for groups in every:
        strata = strata_of(labels, groups.large(people), labels.columns, people)
        source = "shares of a tenth assumed"
        one = Planned("classics.share_gap", groups, Scores(0.2, mean=0.1), source, strata=strata, rests=True)
        planned.append(one._replace(columns=4 * len(FACES.lists), what="numbers"))
    yield from detectable_rows(planned, people, options)


# Worlds of known truth. Even prompts are people's own classes and good words; odd ones are labels that hurt.

TRIED = Classes(
    lists={"made": tuple(f"class {place}" for place in range(6))},
    templates={"made": "{}"},
    categories={"odd": ("class 1", "class 3", "class 5")},
)


def measure_world(world: World, options: MeasureOptions) -> Iterator[Row]:
    """Labels of six classes; retrieval by the two even ones; women and men as X and Y of an image test."""
    there = ~np.isnan(world.scores).any(axis=1)
    images, scores = world.table.filter(pl.Series(there)).drop("brightness"), world.scores[there]
    names = TRIED.lists["made"]
    asked = prompt_set("made", [{"text": name, "concept": name, "template": "made", "valence": "a"} for name in names])
    matrix = ScoreMatrix("made", images, asked.table, ("score",), scores[:, :6, None])
    rows = [*class_rows(matrix, TRIED, options), *retrieval_rows(matrix.columns(np.array([0, 2])), options)]
    same = images["race"].eq("Black").eq(images["branch"].eq("a")).all()  # then race may truly be found
    yield from (row for row in rows if not same or row.subset != "race")
    woman, people = (images["gender"] == "woman").to_numpy(), people_of(images)
    order = np.concatenate([np.flatnonzero(woman), np.flatnonzero(~woman)])
    near, test = scores[:, 0] - scores[:, 1], ImageTest("made", "woman", "man", "even", "odd")
    there = 0 < woman.sum() < len(woman)  # few people may all lack a score
    yield from tested([(test, near[woman], near[~woman], people.rows(order))] if there else [], options)


JUDGED = tuple(f"classics.{name}" for name in ("share_gap", "belief_gap", "retrieved_gap", "place_gap"))
FOUND, TESTED = ("classics.label", "classics.retrieval"), ("classics.image_association", "classics.images")
TRUE = (*(f"{name}:gender" for name in (*JUDGED, *FOUND)), *TESTED, "classics.image_p")
TRIALS = Trial(
    6,
    measure_world,
    {GENDER_ONLY: TRUE},
    found=("classics.share_gap", "classics.belief_gap", "classics.place_gap", *FOUND, *TESTED),
)


# Printed numbers: a public replication of CLIP's labels, and iEAT's released table

PRINTED = Printed(
    Path(__file__).with_name("printed.csv"),
    (
        Source(
            "clip_replication",
            "a public replication of CLIP § 7.1 on FairFace (openai/CLIP issue 157)",
            "shares of crime-related and non-human first choices by race, ViT-L/14@336px, 21 classes",
            ("CLIP's own table is of an unreleased model; the replication's non-human shares are far lower.",),
        ),
        Source(
            "ieat_results",
            "iEAT's released results (ryansteed/ieat)",
            "effect sizes and one-sided p of 39 image tests, three models",
            ("p of more than 10,000 arrangements is drawn by lot: another draw gives another third digit.",),
        ),
    ),
)
