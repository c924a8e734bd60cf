"""Perception: which social judgements does a model make of faces, and which of what it sees moves them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.datasets.adult_faces import FAIRFACE_NAME, UTKFACE_NAME, adults
from beholder.datasets.dataset import Dataset
from beholder.datasets.glasshouse import DESIGN_NAME
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.task import Task
from beholder.studies.perception.bias import DEVIATIONS, PER_CENT, bias_rows
from beholder.studies.perception.brightness import brightness_rows
from beholder.studies.perception.curves import confound_rows, gap_rows, score_rows, separation_rows, trajectory_rows
from beholder.studies.perception.design import SHARE, STATISTIC, effect_rows, interaction_rows, variance_rows
from beholder.studies.perception.induced import induced_rows
from beholder.studies.perception.neutral import CORRELATION, RATIO, neutral_rows
from beholder.studies.perception.prompts import (
    DIMENSIONS,
    FITS,
    RELEASED_TEMPLATES,
    TEMPLATES,
    Dimension,
    perception_prompts,
    read_dimensions,
)
from beholder.studies.perception.ranking import LOGARITHM, NATS
from beholder.studies.perception.ratings import rating_rows, read_ratings
from beholder.studies.perception.scores import GROUPED, read_judged
from beholder.studies.rows import PROBABILITY, refusal_metric, refusal_rows
from beholder.studies.study import Matrices, Measure, MeasureOptions, Metric, Option, Study

TASK = "perception"
UNIT = "cosine"

METRICS = (
    Metric(
        "perception.delta_cosine",
        "judgements",
        UNIT,
        "mean of a dimension's words less the neutral prompt; 0 the words add nothing; printed × 100",
    ),
    Metric("perception.cosine", "judgements", UNIT, "mean cosine of a dimension's words; printed × 100"),
    Metric("perception.word_delta_cosine", "judgements", UNIT, "the same as delta_cosine, word by word"),
    Metric("perception.gap", "effects", UNIT, "one group's delta_cosine less another's; 0 alike"),
    Metric(
        "perception.causal_effect",
        "effects",
        UNIT,
        "what changing one attribute alone does to delta_cosine, over matched sets; 0 nothing",
    ),
    Metric(
        "perception.absolute_difference",
        "effects",
        UNIT,
        "mean absolute difference of the same sets, as published; above 0 by noise alone",
    ),
    Metric(
        "perception.interaction",
        "effects",
        UNIT,
        "how much more an attribute does for one group than for another over its range; 0 the same",
    ),
    Metric(
        "perception.induced_variation",
        "effects",
        UNIT,
        "median absolute difference of 1,000 pairs that differ in one attribute alone; above 0 by noise alone",
    ),
    Metric("perception.induced_variation_quantile", "effects", UNIT, "quantiles of the same differences, for boxes"),
    Metric(
        "perception.induced_variation_test",
        "effects",
        STATISTIC,
        "chance that a pair of the first attribute differs by more than one of the second; 0.5 alike",
    ),
    Metric(
        "perception.variance_share",
        "effects confounds",
        SHARE,
        "share of the spread that goes with an attribute, less what chance gives; 0 none, 1 all",
    ),
    Metric("perception.trajectory", "curves", UNIT, "delta_cosine at one level of an attribute, by group"),
    Metric("perception.trajectory_fit", "curves", UNIT, "the second-degree curve through the levels"),
    Metric("perception.valence_point", "curves", UNIT, "positive and negative ends of the scales at one age, by group"),
    Metric(
        "perception.separation",
        "confounds",
        DEVIATIONS,
        "distance of two groups' points over the ages; 0 they coincide",
    ),
    Metric(
        "perception.opposites_r",
        "confounds",
        CORRELATION,
        "of the curves of opposite dimensions; −1 they oppose each other, 1 they move together",
    ),
    Metric("perception.neutral_cosine", "neutral", UNIT, "mean cosine of the neutral prompt"),
    Metric("perception.neutral_test", "neutral", STATISTIC, "t of the neutral cosine between two groups"),
    Metric("perception.neutral_r", "neutral", CORRELATION, "of a dimension with the neutral prompt over images"),
    Metric("perception.narrowing", "neutral", RATIO, "spread after Δ over before; below 1 Δ brings groups together"),
    Metric(
        "perception.density", "confounds", "density", "of the neutral cosine, and of all dimensions before and after Δ"
    ),
    Metric(
        "perception.markedness",
        "ranking",
        PER_CENT,
        "images of a group that the neutral prompt fits better than the group's own word; 0 marked",
    ),
    Metric("perception.mean_cosine", "ranking", UNIT, "mean over the positive dimensions"),
    Metric(
        "perception.sc_weat",
        "ranking",
        DEVIATIONS,
        "how much nearer the words lie to the first group, mean over words; 0 equally near",
    ),
    Metric(
        "perception.skew",
        "ranking",
        LOGARITHM,
        "of a group's share among the top k over its even share; 0 even, above 0 more",
    ),
    Metric("perception.max_skew", "ranking", LOGARITHM, "the largest skew of an attribute's groups; 0 even"),
    Metric(
        "perception.ndkl",
        "ranking",
        NATS,
        "divergence of all prefixes of a ranking from even shares; 0 even throughout",
    ),
    Metric(
        "perception.brightness",
        "confounds",
        "mean sign",
        "of grey-value differences of pairs; 0 even, 1 first brighter",
    ),
    Metric("perception.rating_r", "ratings", CORRELATION, "of people's ratings with delta_cosine; 1 the same order"),
    Metric("perception.rating_departure", "ratings", DEVIATIONS, "the model above people's ratings; 0 it agrees"),
    Metric("perception.answer_mass", "results", PROBABILITY, "mean P(yes) + P(no): 1 answers, 0 says something else"),
    refusal_metric("perception"),
)

LIMITATIONS = (
    "A cosine is not a probability and not a judgement anyone stated; differences of it are what can be compared.",
    "A mean absolute difference is above 0 by noise alone: read the causal effects.",
    "A model that answers in words is asked whether each caption fits; its numbers are P(Yes), not the study's cosine.",
)


def _measure(
    dimensions: Sequence[Dimension], ratings: pl.DataFrame | None, matrices: Matrices, options: MeasureOptions
) -> Iterator[Row]:
    """All seven analyses, as far as the data set allows them."""
    judged = read_judged(matrices[TASK], dimensions)
    if not judged.images.height:
        raise DataError("No image has a score for every prompt that was scored: nothing can be measured.")
    yield from score_rows(judged)
    yield from gap_rows(judged)
    yield from bias_rows(judged, options)
    yield from trajectory_rows(judged, options)
    yield from separation_rows(judged, options)
    yield from confound_rows(judged)
    yield from neutral_rows(judged, options)
    yield from variance_rows(judged)
    if judged.designed:
        yield from effect_rows(judged, options)
        yield from interaction_rows(judged, options)
        yield from induced_rows(judged, options)
        yield from brightness_rows(judged, options.rng())
    if ratings is not None:
        yield from rating_rows(judged, ratings)
    yield from _answer_rows(matrices[TASK])
    for attribute in GROUPED:
        yield from refusal_rows("perception", matrices[TASK], attribute)


def _answer_rows(matrix: ScoreMatrix) -> Iterator[Row]:
    """Does a model that answers in words answer yes or no at all?"""
    if (answers := matrix.answers()) is not None:
        yes, no = answers
        note = "mean P(yes) + P(no)"
        yield Row("perception.answer_mass", float(np.nanmean(yes + no)), len(yes), PROBABILITY, note=note)


def perception_study(dimensions: Sequence[Dimension] = DIMENSIONS, ratings: pl.DataFrame | None = None) -> Study:
    """Perception with the study's dimensions or a user's own, and people's ratings beside them where there are any."""

    def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
        return _measure(dimensions, ratings, matrices, options)

    def asked(dataset: Dataset) -> list[Task]:
        return [Task(TASK, adults(dataset), perception_prompts(dimensions, TEMPLATES))]

    def as_released(dataset: Dataset) -> list[Task]:
        return [Task(TASK, adults(dataset), perception_prompts(dimensions, RELEASED_TEMPLATES))]

    measures: tuple[Measure, ...] = (measure,)
    return Study(
        name="perception",
        title="Perception: social judgement of faces",
        short="Perception",
        question="Which social judgements does the model make of faces, and what moves them?",
        citation="Hausladen and others, Social perception of faces in a vision-language model (2024)",
        datasets=("causalface", FAIRFACE_NAME, UTKFACE_NAME, DESIGN_NAME),
        tasks=asked,
        compat_tasks=as_released,
        everywhere=True,
        measures=measures,
        metrics=METRICS,
        instruction=FITS,
        subset_attribute="race",
        reference_models=("glasshouse/contrastive",),
        options=OPTIONS,
        configure=configured,
        chapter="beholder.studies.perception.chapter:CHAPTER",
        plan="beholder.studies.perception.planning:plan",
        trials="beholder.studies.perception.trials:perception_experiments",
        weaknesses="beholder.studies.perception.weaknesses:weaknesses",
        limitations=LIMITATIONS,
        of_photographs=(
            "Race, gender and age are perceived labels, of annotators or of a model; three race labels are compared.",
            "Groups of photographs differ in more than their label: only matched sets tell what an attribute does.",
        ),
    )


OPTIONS = (
    Option(
        "dimensions",
        "With perception: own dimensions (a table with the columns dimension, word, and valence, opposite).",
    ),
    Option("ratings", "With perception: people's ratings (a table with the columns image or group, trait, mean, n)."),
)


def configured(study: Study, options: Mapping[str, Any]) -> Study:
    """Perception with the user's own dimensions, or beside people's ratings."""
    dimensions = read_dimensions(options["dimensions"]) if "dimensions" in options else DIMENSIONS
    return perception_study(dimensions, read_ratings(options["ratings"]) if "ratings" in options else None)


PERCEPTION = perception_study()
