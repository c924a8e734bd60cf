"""One score per concept and image, the groups that are compared, and scores as probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from beholder.core.errors import DataError, UnknownName, UsageError
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.scores import read_concept_scores, read_confidence
from beholder.studies.disparity.study import Choices
from beholder.studies.study import MeasureOptions

Measure = Callable[..., pl.DataFrame]
World = Callable[..., ScoreMatrix]


def test_any_attribute_can_be_compared_and_a_wrong_one_is_named(matrix: ScoreMatrix):
    images = matrix.images.with_columns(pl.Series("age", ["old", "young", None] * 200))
    aged = replace(matrix, images=images, dataset=replace(matrix.dataset, table=images))
    data = read_concept_scores(aged, "age")
    assert [pair[:2] for pair in data.pairs] == [("old", "young")]
    assert len(data.codes) == 400
    with pytest.raises(UnknownName, match="no attribute 'ages'"):
        read_concept_scores(matrix, "ages")
    with pytest.raises(DataError, match="only 'man'"):
        read_concept_scores(matrix.rows((matrix.images["gender"] == "man").to_numpy()), None)
    with pytest.raises(DataError, match="does not say what its images show"):
        read_concept_scores(replace(matrix, dataset=replace(matrix.dataset, objects=None)), None)


@pytest.mark.parametrize(
    ("groups", "pairs"),
    [
        (("the rest", "x less y"), [("the rest", "x less y")]),
        (("a", "b", "c"), [(group, "the rest") for group in "abc"]),
        (("a", "b", "the rest"), [(group, "all the rest") for group in ("a", "b", "the rest")]),
    ],
)
def test_the_rest_has_a_name_that_no_group_has(
    object_world: World, groups: tuple[str, ...], pairs: list[tuple[str, str]]
):
    data = read_concept_scores(object_world(40, groups=groups), None)
    assert [pair[:2] for pair in data.pairs] == pairs


def test_the_score_depends_on_the_kind_of_model(matrix: ScoreMatrix):
    raw = matrix.values[:, :, 0]
    assert (read_concept_scores(matrix, None).scores[raw < 0.1] == 0).all()
    segmenter = replace(matrix, channels=("presence", "area"), values=np.repeat(matrix.values, 2, axis=2))
    np.testing.assert_array_equal(read_concept_scores(segmenter, None).scores, raw)  # pixels are not boxes
    answers = replace(matrix, channels=("log_p_yes",), values=np.log(matrix.values))
    np.testing.assert_allclose(read_concept_scores(answers, None).scores, raw, rtol=1e-5)


def test_several_templates_are_averaged(matrix: ScoreMatrix):
    table = matrix.prompts.with_columns(pl.lit("drawing").alias("level"), pl.col("prompt_id") + "!")
    both = replace(
        matrix,
        channels=("cosine",),
        prompts=pl.concat([matrix.prompts, table]),
        values=np.concatenate([matrix.values, 3 * matrix.values], axis=1),
    )
    np.testing.assert_allclose(read_concept_scores(both, None).scores, 2 * matrix.values[:, :, 0].astype(float))


@pytest.mark.parametrize("channel", ["cosine", "area", "score"])
def test_scores_that_are_not_probabilities_have_no_confidence(matrix: ScoreMatrix, channel: str):
    confidence = read_confidence(
        read_concept_scores(replace(matrix, channels=(channel,)), None), "auto", MeasureOptions()
    )
    assert confidence.values is None
    assert f"a {channel} is not a probability; --calibration platt" in confidence.source


def test_imported_scores_are_probabilities_only_on_request(object_world: World, measure: Measure, one: Any):
    scores = object_world(channel="score")
    assert measure(scores).filter(pl.col("metric") == "disparity.ece")["value"].to_list() == [None]
    assert one(measure(scores, Choices(calibration="scores")), "ece", group="man", concept="tie")["value"] > 0
    with pytest.raises(UsageError, match="lie between"):
        measure(object_world(channel="cosine"), Choices(calibration="scores"))
