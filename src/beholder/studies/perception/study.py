"""Perception: which social judgements does a model make of faces, and which of what it sees moves them?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
)
from beholder.studies.perception.ranking import LOGARITHM, NATS
from beholder.studies.perception.ratings import rating_rows
from beholder.studies.perception.scores import GROUPED, read_judged
from beholder.studies.rows import PROBABILITY, REFUSAL, refusal_rows
from beholder.studies.study import Benchmark, Matrices, Measure, MeasureOptions, MetricInfo

TASK = "perception"
UNIT = "cosine"

METRICS = {
    "perception.delta_cosine": MetricInfo(
        UNIT, "mean of a dimension's words less the neutral prompt; 0 the words add nothing; printed × 100"
    ),
    "perception.cosine": MetricInfo(UNIT, "mean cosine of a dimension's words; printed × 100"),
    "perception.word_delta_cosine": MetricInfo(UNIT, "the same as delta_cosine, word by word"),
    "perception.gap": MetricInfo(UNIT, "one group's delta_cosine less another's; 0 alike"),
    "perception.causal_effect": MetricInfo(
        UNIT, "what changing one attribute alone does to delta_cosine, over matched sets; 0 nothing"
    ),
    "perception.absolute_difference": MetricInfo(
        UNIT, "mean absolute difference of the same sets, as published; above 0 by noise alone"
    ),
    "perception.interaction": MetricInfo(
        UNIT, "how much more an attribute does for one group than for another over its range; 0 the same"
    ),
    "perception.induced_variation": MetricInfo(
        UNIT, "median absolute difference of 1,000 pairs that differ in one attribute alone; above 0 by noise alone"
    ),
    "perception.induced_variation_quantile": MetricInfo(UNIT, "quantiles of the same differences, for boxes"),
    "perception.induced_variation_test": MetricInfo(
        STATISTIC, "chance that a pair of the first attribute differs by more than one of the second; 0.5 alike"
    ),
    "perception.variance_share": MetricInfo(
        SHARE, "share of the spread that goes with an attribute, less what chance gives; 0 none, 1 all"
    ),
    "perception.trajectory": MetricInfo(UNIT, "delta_cosine at one level of an attribute, by group"),
    "perception.trajectory_fit": MetricInfo(UNIT, "the second-degree curve through the levels"),
    "perception.valence_point": MetricInfo(UNIT, "positive and negative ends of the scales at one age, by group"),
    "perception.separation": MetricInfo(DEVIATIONS, "distance of two groups' points over the ages; 0 they coincide"),
    "perception.opposites_r": MetricInfo(
        CORRELATION, "of the curves of opposite dimensions; −1 they oppose each other, 1 they move together"
    ),
    "perception.neutral_cosine": MetricInfo(UNIT, "mean cosine of the neutral prompt"),
    "perception.neutral_test": MetricInfo(STATISTIC, "t of the neutral cosine between two groups"),
    "perception.neutral_r": MetricInfo(CORRELATION, "of a dimension with the neutral prompt over images"),
    "perception.narrowing": MetricInfo(RATIO, "spread after Δ over before; below 1 Δ brings groups together"),
    "perception.density": MetricInfo("density", "of the neutral cosine, and of all dimensions before and after Δ"),
    "perception.markedness": MetricInfo(
        PER_CENT, "images of a group that the neutral prompt fits better than the group's own word; 0 marked"
    ),
    "perception.mean_cosine": MetricInfo(UNIT, "mean over the positive dimensions"),
    "perception.sc_weat": MetricInfo(
        DEVIATIONS, "how much nearer the words lie to the first group, mean over words; 0 equally near"
    ),
    "perception.skew": MetricInfo(
        LOGARITHM, "of a group's share among the top k over its even share; 0 even, above 0 more"
    ),
    "perception.max_skew": MetricInfo(LOGARITHM, "the largest skew of an attribute's groups; 0 even"),
    "perception.ndkl": MetricInfo(NATS, "divergence of all prefixes of a ranking from even shares; 0 even throughout"),
    "perception.brightness": MetricInfo("mean sign", "of grey-value differences of pairs; 0 even, 1 first brighter"),
    "perception.rating_r": MetricInfo(CORRELATION, "of people's ratings with delta_cosine; 1 the same order"),
    "perception.rating_departure": MetricInfo(DEVIATIONS, "the model above people's ratings; 0 it agrees"),
    "perception.answer_mass": MetricInfo(PROBABILITY, "mean P(yes) + P(no): 1 answers, 0 says something else"),
    "perception.refusal_share": REFUSAL,
}

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
    if {"log_p_yes", "log_p_no"} <= set(matrix.channels):
        yes, no = (np.exp(matrix.channel(name).astype(np.float64)) for name in ("log_p_yes", "log_p_no"))
        note = "mean P(yes) + P(no)"
        yield Row("perception.answer_mass", float(np.nanmean(yes + no)), len(yes), PROBABILITY, note=note)


def perception_benchmark(
    dimensions: Sequence[Dimension] = DIMENSIONS, ratings: pl.DataFrame | None = None
) -> Benchmark:
    """Perception with the study's dimensions or a user's own, and people's ratings beside them where there are any."""

    def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
        return _measure(dimensions, ratings, matrices, options)

    def asked(dataset: Dataset) -> list[Task]:
        return [Task(TASK, adults(dataset), perception_prompts(dimensions, TEMPLATES))]

    def as_released(dataset: Dataset) -> list[Task]:
        return [Task(TASK, adults(dataset), perception_prompts(dimensions, RELEASED_TEMPLATES))]

    measures: tuple[Measure, ...] = (measure,)
    return Benchmark(
        name="perception",
        title="Perception: social judgement of faces",
        question="Which social judgements does the model make of faces, and what moves them?",
        study="Hausladen and others, Social perception of faces in a vision-language model (2024)",
        datasets=("causalface", FAIRFACE_NAME, UTKFACE_NAME, DESIGN_NAME),
        tasks=asked,
        compat_tasks=as_released,
        everywhere=True,
        measures=measures,
        metrics=METRICS,
        instruction=FITS,
        subset_attribute="race",
        published=("perception_table_s1", "perception_table_s2"),
        limitations=LIMITATIONS,
        of_photographs=(
            "Race, gender and age are perceived labels, of annotators or of a model; three race labels are compared.",
            "Groups of photographs differ in more than their label: only matched sets tell what an attribute does.",
        ),
    )


PERCEPTION = perception_benchmark()
