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


def test_detections_are_ranked_as_indicators_where_asked_or_with_compat(
    matrix: ScoreMatrix, measure: Measure, one: Callable[..., dict[str, Any]]
):
    """Two levels of scores: the share found times the precision there, the rest at the prevalence."""
    boxes = replace(matrix, values=np.where(matrix.values < 0.4, 0.0, matrix.values).astype(matrix.values.dtype))
    asked, printed, scored = measure(boxes, Choices(indicators=True)), measure(boxes, compat=True), measure(boxes)
    column = boxes.prompts["concept"].to_list().index("tie")
    shown = boxes.dataset.objects.filter(concept="tie")["image_id"]
    for group in ("man", "woman"):
        mine = (boxes.images["gender"] == group).to_numpy()
        there = boxes.images["image_id"].is_in(shown.implode()).to_numpy()[mine]
        found = boxes.values[mine, column, 0] > 0.1
        recall, precision = (there & found).sum() / there.sum(), there[found].mean()
        expected = recall * precision + (1 - recall) * there.mean()
        for results in (asked, printed):
            row = one(results, "average_precision", concept="tie", group=group)
            assert row["value"] == pytest.approx(expected, rel=1e-5)
            note = one(results, "mean_average_precision", group=group)["note"]
            assert note.endswith("ranked by binary indicators")
        assert one(scored, "average_precision", concept="tie", group=group)["value"] != pytest.approx(expected)
    errors = [table.filter(metric="disparity.ece")["value"].to_list() for table in (asked, printed, scored)]
    assert errors[0] == errors[1] == errors[2] != []  # confidence stays the score


def test_cosines_are_no_indicators_and_a_pixel_is_there_from_one_half(matrix: ScoreMatrix):
    raw = matrix.values[:, :, 0]
    cosine = read_concept_scores(replace(matrix, channels=("cosine",)), None)
    assert cosine.indicated() is cosine
    for channels, above in {("presence",): 0.1, ("presence", "area"): 0.5, ("area",): 0.0}.items():
        cells = np.repeat(matrix.values, len(channels), axis=2)
        data = read_concept_scores(replace(matrix, channels=channels, values=cells), None).indicated()
        np.testing.assert_array_equal(data.scores, raw > above)
