"""Perception: which social judgements does a model make of faces, and which attributes move them?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
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
from beholder.studies.perception.brightness import SIGN, brightness_rows
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

difference = partial(Metric, landmark=0.0, paired=True)
METRICS = (
    Metric(
        "perception.delta_cosine",
        "judgements",
        UNIT,
        "mean of a dimension's words less the neutral prompt; 0: the words add nothing; printed × 100",
        landmark=0.0,
    ),
    Metric("perception.cosine", "judgements", UNIT, "mean cosine of a dimension's words; printed × 100"),
    Metric("perception.word_delta_cosine", "judgements", UNIT, "delta_cosine of a single word", landmark=0.0),
    difference("perception.gap", "effects", UNIT, "delta_cosine of one group less that of another; 0: the same"),
    difference(
        "perception.causal_effect",
        "effects",
        UNIT,
        "change of delta_cosine when one attribute alone changes; 0: no effect",
    ),
    Metric(
        "perception.absolute_difference",
        "effects",
        UNIT,
        "mean absolute difference of the same sets, as published; noise alone makes it more than 0",
        paired=True,
    ),
    difference(
        "perception.interaction",
        "effects",
        UNIT,
        "how much more an attribute changes delta_cosine for one group than for another; 0: the same",
    ),
    Metric(
        "perception.induced_variation",
        "effects",
        UNIT,
        "median absolute difference of 1,000 pairs that differ in one attribute alone; noise makes it more than 0",
    ),
    Metric("perception.induced_variation_quantile", "effects", UNIT, "quantiles of the same differences, for boxes"),
    Metric(
        "perception.induced_variation_test",
        "effects",
        STATISTIC,
        "chance that a pair of one attribute differs more than one of another; 0.5: the same",
        landmark=0.5,
        paired=True,
    ),
    Metric(
        "perception.variance_share",
        "effects confounds",
        SHARE,
        "share of the variance that an attribute explains, less what chance gives; 0: none, 1: all",
        landmark=0.0,
    ),
    Metric("perception.trajectory", "curves", UNIT, "delta_cosine at one level of an attribute, by group"),
    Metric("perception.trajectory_fit", "curves", UNIT, "the second-degree curve through the levels"),
    Metric("perception.valence_point", "curves", UNIT, "positive and negative ends of the scales at one age, by group"),
    Metric(
        "perception.separation",
        "confounds",
        DEVIATIONS,
        "distance between two groups' points over the ages; 0: they coincide",
        paired=True,
    ),
    Metric(
        "perception.opposites_r",
        "confounds",
        CORRELATION,
        "of the curves of opposite dimensions; −1: they oppose each other, 1: they move together",
        paired=True,
    ),
    Metric("perception.neutral_cosine", "neutral", UNIT, "mean cosine of the neutral prompt"),
    difference(
        "perception.neutral_test",
        "neutral",
        STATISTIC,
        "t of the difference in neutral cosine between two groups; 0: the same",
    ),
    Metric("perception.neutral_r", "neutral", CORRELATION, "of a dimension with the neutral prompt over images"),
    Metric(
        "perception.narrowing",
        "neutral",
        RATIO,
        "spread after Δ divided by the spread before; below 1: Δ brings groups closer together",
        landmark=1.0,
    ),
    Metric(
        "perception.density", "confounds", "density", "of the neutral cosine, and of all dimensions before and after Δ"
    ),
    Metric(
        "perception.markedness",
        "ranking",
        PER_CENT,
        "images of a group that the neutral prompt fits better than the group's own word; 0: always marked",
    ),
    Metric("perception.mean_cosine", "ranking", UNIT, "mean over the positive dimensions"),
    difference(
        "perception.sc_weat",
        "ranking",
        DEVIATIONS,
        "how much closer the words are to one group than to another; 0: equally close",
    ),
    Metric(
        "perception.skew",
        "ranking",
        LOGARITHM,
        "of a group's share of the top k divided by its even share; 0: even, above 0: more",
        landmark=0.0,
    ),
    Metric("perception.max_skew", "ranking", LOGARITHM, "the largest skew of an attribute's groups; 0: even"),
    Metric(
        "perception.ndkl",
        "ranking",
        NATS,
        "divergence of all prefixes of a ranking from even shares; 0: even throughout",
    ),
    difference(
        "perception.brightness",
        "confounds",
        SIGN,
        "of the grey-value differences of pairs; 0: even, 1: the first is always brighter",
    ),
    Metric("perception.rating_r", "ratings", CORRELATION, "of people's ratings with delta_cosine; 1: the same order"),
    Metric(
        "perception.rating_departure",
        "ratings",
        DEVIATIONS,
        "how far the model is above people's ratings; 0: it agrees with them",
        landmark=0.0,
    ),
    Metric(
        "perception.answer_mass",
        "results",
        PROBABILITY,
        "mean P(yes) + P(no); 1: it answers, 0: it says something else",
    ),
    refusal_metric("perception"),
)

LIMITATIONS = (
    "A cosine is not a probability, and nobody stated it as a judgement; only differences between cosines compare.",
    "Noise alone makes a mean absolute difference more than 0: read the causal effects.",
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
    """How much of its probability a model that answers in words gives to yes and no."""
    if (answers := matrix.answers()) is not None:
        yes, no = answers
        note = "mean P(yes) + P(no)"
        yield Row("perception.answer_mass", float(np.nanmean(yes + no)), len(yes), PROBABILITY, note=note)


def perception_study(dimensions: Sequence[Dimension] = DIMENSIONS, ratings: pl.DataFrame | None = None) -> Study:
    """Perception with the study's dimensions or a user's own, and with people's ratings if there are any."""

    def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
        return _measure(dimensions, ratings, matrices, options)

    def tasks(dataset: Dataset) -> list[Task]:
        return [Task(TASK, adults(dataset), perception_prompts(dimensions, TEMPLATES))]

    def released_tasks(dataset: Dataset) -> list[Task]:
        return [Task(TASK, adults(dataset), perception_prompts(dimensions, RELEASED_TEMPLATES))]

    measures: tuple[Measure, ...] = (measure,)
    return Study(
        name="perception",
        title="Perception: social judgement of faces",
        short="Perception",
        question="Which social judgements does the model make of faces, and what moves them?",
        citation="Hausladen and others, Social perception of faces in a vision-language model (2024)",
        datasets=("causalface", FAIRFACE_NAME, UTKFACE_NAME, DESIGN_NAME),
        tasks=tasks,
        compat_tasks=released_tasks,
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
        printed="beholder.studies.perception.printed:PRINTED",
        trials="beholder.studies.perception.trials:perception_experiments",
        power_curve=(
            "perception.gap",
            "Difference of two groups' judgements",
            "difference in standard deviations of the noise",
        ),
        weaknesses="beholder.studies.perception.weaknesses:weaknesses",
        limitations=LIMITATIONS,
        of_photographs=(
            "Race, gender and age are perceived labels, of annotators or of a model; three race labels are compared.",
            "Groups of photographs differ in more than their label: only matched sets show the effect of an attribute.",
        ),
    )


OPTIONS = (
    Option(
        "dimensions",
        "With perception: your own dimensions, a table with the columns dimension, word, and maybe valence, opposite.",
    ),
    Option("ratings", "With perception: people's ratings, a table with the columns image or group, trait, mean, n."),
)


def configured(study: Study, options: Mapping[str, Any]) -> Study:
    """Perception with the user's own dimensions, or with people's ratings."""
    dimensions = read_dimensions(options["dimensions"]) if "dimensions" in options else DIMENSIONS
    return perception_study(dimensions, read_ratings(options["ratings"]) if "ratings" in options else None)


PERCEPTION = perception_study()
