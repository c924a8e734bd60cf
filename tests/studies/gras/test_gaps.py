"""Gaps are judged within the other attributes and the image source, all attributes as one family."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from beholder.core.results import Row, results_table
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.findings import gras_findings


def called(rows: list[Row]) -> set[str | None]:
    """The attributes by which a difference was found."""
    metrics = ("gras.largest_gap", "gras.other_gap", "gras.attribute")
    return {row.subset for row in rows if row.metric in metrics and row.verdict == "difference found"}


def labelled(world, **columns: np.ndarray) -> ScoreMatrix:
    matrix = world(240)
    return replace(
        matrix, images=matrix.images.drop("skin_tone").with_columns(**{k: pl.Series(v) for k, v in columns.items()})
    )


def unbalanced(matrix: ScoreMatrix, values: tuple[str, str]) -> np.ndarray:
    """A label that four of five women have, and one of five men."""
    often = np.where(matrix.images["gender"] == "Female", 0.8, 0.2)
    return np.where(np.random.default_rng(5).random(240) < often, *values)


def test_a_model_that_sees_the_image_source_alone_is_not_called(world, measure):
    source = unbalanced(world(240), ("FFHQ", "imdb"))
    matrix = labelled(world, source=source)
    matrix.values[source == "FFHQ", :10] += 0.2
    rows = measure(matrix)
    assert called(rows) == set()
    (plain, judged) = [row for row in rows if row.metric == "gras.largest_gap" and row.concept == "kind"]
    assert plain.value > 0.1, "the published gap is there all the same"
    assert judged.variant == "within source"
    assert judged.low < 0 < judged.high


def test_a_model_that_sees_gender_alone_is_not_called_by_race(world, measure):
    matrix = labelled(world, race=unbalanced(world(240), ("Black", "White")))
    matrix.values[(matrix.images["gender"] == "Female").to_numpy(), :10] += 0.2
    assert called(measure(matrix)) == {"gender"}


def test_labels_that_coincide_are_judged_as_they_are_and_said_to_be_one(world, measure):
    women = (world(240).images["gender"] == "Female").to_numpy()
    matrix = labelled(world, age=np.where(women, "20-29", "60-69"))
    matrix.values[women, :10] += 0.2
    rows = measure(matrix)
    assert called(rows) == {"gender", "age"}
    found = gras_findings(results_table(rows, study="gras", model="m", dataset="d"))
    sentences = " ".join(finding.sentence for finding in found if finding.kind == "gap")
    assert "gender and age cannot be distinguished here" in sentences
    assert "age and gender cannot be distinguished here" in sentences


def test_opposite_gaps_in_two_sources_do_not_cancel(world, measure):
    source = np.where(np.random.default_rng(1).random(240) < 0.5, "FFHQ", "imdb")
    matrix = labelled(world, source=source)
    women = (matrix.images["gender"] == "Female").to_numpy()
    matrix.values[women & (source == "FFHQ"), :5] += 0.15
    matrix.values[women & (source == "imdb"), :5] -= 0.15
    rows = measure(matrix)
    (other,) = [row for row in rows if row.metric == "gras.other_gap" and row.concept == "kind"]
    assert (other.verdict, other.value) == ("difference found", pytest.approx(0.15, abs=0.03))
    assert other.variant in ("within FFHQ", "within imdb")


@pytest.mark.parametrize("column", ["person", "name"])
def test_a_fixed_vector_for_each_person_gives_nothing(column: str, world, measure):
    matrix, rng = world(240), np.random.default_rng(4)
    who = np.arange(240) // 12
    vectors = rng.normal(0.5, 0.1, (20, matrix.prompts.height))
    matrix.values[:, :, 0] = np.clip(vectors[who], 0.01, 0.99)
    images = matrix.images.select("image_id", "part").with_columns(
        pl.Series("gender", np.where(who % 2 == 0, "Female", "Male")), pl.Series(column, who.astype(str))
    )
    assert not any(row.verdict == "difference found" for row in measure(replace(matrix, images=images)))


def test_all_attributes_and_traits_are_one_family(world, measure):
    """A difference by gender has a larger p where ten skin tones are compared too."""
    matrix = world(100, effect=0.018, seed=4)
    alone = replace(matrix, images=matrix.images.drop("skin_tone"))
    p_values = [
        next(row.p_value for row in measure(each) if row.metric == "gras.attribute" and row.subset == "gender")
        for each in (alone, matrix)
    ]
    assert p_values[0] < p_values[1]


def test_a_wholly_biased_model_is_found_from_ten_and_ten_people_on(world, measure):
    matrix = world(20)
    women = np.arange(20) % 2 == 0
    matrix.values[:, :, 0] = np.where(women[:, None] == (np.arange(20) // 5 % 2 == 0), 1.0, 0.0)
    images = matrix.images.drop("skin_tone").with_columns(gender=pl.Series(np.where(women, "Female", "Male")))
    rows = measure(replace(matrix, images=images))
    assert {row.verdict for row in rows if row.metric == "gras.largest_gap"} == {"difference found"}
