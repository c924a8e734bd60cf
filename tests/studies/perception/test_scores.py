"""Scores by word and dimension: what is missing is left out and named, every family of model has its unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import PROMPTS, matrix, measured, one, photographs, rng

from beholder.comparison.groups import group_by
from beholder.core.errors import DataError
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.perception.prompts import DIMENSIONS, NEUTRAL, Dimension
from beholder.studies.perception.scores import read_judged


def obvious(sheet: ScoreMatrix, words: tuple[str, ...], mask: np.ndarray, *, delta: bool) -> float:
    """The protocol's definition, cell by cell."""
    texts, total = dict(zip(sheet.prompts["text"], range(sheet.prompts.height), strict=True)), []
    for image in np.flatnonzero(mask):
        for word in words:
            for template in (
                "A photo of a {} person.",
                "A {} person.",
                "This is a {} person.",
                "Cropped face photo of a {} person.",
            ):
                own = sheet.values[image, texts[template.replace("{}", word)], 0]
                neutral = sheet.values[image, texts[template.replace("{} ", "")], 0]
                total.append(own - neutral if delta else own)
    return float(np.mean(total))


@pytest.mark.parametrize("dimension", [DIMENSIONS[0], DIMENSIONS[5]])
def test_scores_are_means_over_templates_words_and_images(faces, results, dimension: Dimension):
    black = (faces.images["race"] == "Black").to_numpy()
    for metric, delta in (("cosine", False), ("delta_cosine", True)):
        table = one(results, metric, subset="race", group="Black", concept=dimension.name)
        assert table["value"] == pytest.approx(obvious(faces, dimension.words, black, delta=delta))
        assert table["n"] == black.sum()
        assert table["low"] < table["value"] < table["high"]


def test_a_word_without_scores_is_left_out_of_its_dimension_and_named():
    prompts = PROMPTS.filter(pl.col("concept") != "honest")
    table = measured(matrix(photographs(60), prompts=prompts))
    row = one(table, "delta_cosine", subset="everyone", concept="warmth")
    assert row["note"] == "without 'honest': no score"
    assert row["value"] is not None


def test_a_dimension_without_any_word_is_left_out():
    prompts = PROMPTS.filter(~pl.col("concept").is_in(DIMENSIONS[4].words))
    table = measured(matrix(photographs(60), prompts=prompts))
    assert "belief_pos" not in set(table["concept"])


def test_without_the_neutral_prompt_nothing_can_be_measured():
    prompts = PROMPTS.filter(pl.col("concept") != "")
    with pytest.raises(DataError, match="neutral prompt"):
        measured(matrix(photographs(60), prompts=prompts))


def test_a_missing_template_is_left_out_of_the_neutral_mean_too():
    images, prompts = photographs(30), PROMPTS
    cells = rng(2).normal(0.2, 0.02, (30, prompts.height))
    gone = ((prompts["concept"] == "warm") & (prompts["template"] == "T3")).to_numpy()
    cells[:, gone] = np.nan
    judged = read_judged(matrix(images, cells), DIMENSIONS)
    at = {(word, t): k for k, (word, t) in enumerate(prompts.select("concept", "template").iter_rows())}
    expected = np.mean([cells[:, at["warm", t]] - cells[:, at["", t]] for t in ("T1", "T2", "T4")], axis=0)
    np.testing.assert_allclose(judged.delta[:, judged.words.index("warm")], expected)


@pytest.mark.parametrize(("channel", "unit"), [("match_logit", "match logit"), ("log_p_yes", "P(Yes)")])
def test_matching_and_generative_models_are_measured_in_their_own_unit(channel: str, unit: str):
    images = photographs(60)
    values = np.log(rng(4).random((60, PROMPTS.height)))
    table = measured(matrix(images, values, channel=channel))
    row = one(table, "cosine", subset="everyone", concept="warmth")
    assert row["unit"] == unit
    assert (0 < row["value"] < 1) == (channel == "log_p_yes")


def test_crossed_groups_that_read_alike_are_kept_apart():
    """“A B” + “C” and “A” + “B C” are two groups, with means of their own."""
    images = pl.DataFrame({"image_id": ["a", "b", "c"], "race": ["A B", "A", None], "gender": ["C", "B C", "C"]})
    groups = group_by(images, ("race", "gender"))
    assert groups.codes.tolist() == [1, 0, -1]
    assert groups.names == ['"A" "B C"', '"A B" "C"']
    assert group_by(images.with_columns(gender=pl.lit("C")), ("race", "gender")).names == ["A C", "A B C"]


def test_a_person_is_one_whatever_their_images_and_an_unnamed_image_is_someone_else():
    images = photographs(6).with_columns(name=pl.Series(["x", "y", "x", None, None, "y"]))
    who = read_judged(matrix(images), DIMENSIONS).people.codes
    assert who[0] == who[2]
    assert who[1] == who[5]
    assert len(set(who.tolist())) == 4


@pytest.mark.parametrize("rows", [1, 7, 4096])
def test_scores_read_part_by_part_are_those_of_the_whole(rows: int, monkeypatch: pytest.MonkeyPatch):
    """With a prompt that no image has, and images that lack some scores."""
    sheet = matrix(photographs(20))
    values = sheet.values.astype(np.float64)
    values[:, 5] = np.nan
    values[3, 9] = values[11, 0] = np.nan
    sheet = replace(sheet, values=values)
    whole = ScoreMatrix.quantities
    monkeypatch.setattr(ScoreMatrix, "quantities", lambda self, kind: whole(self, kind, rows))
    judged = read_judged(sheet, DIMENSIONS)
    columns: dict[str, dict[str, int]] = {}
    for column, (word, template) in enumerate(sheet.prompts.select("concept", "template").iter_rows()):
        columns.setdefault(word, {})[template] = column
    kept = [image for image in range(20) if image not in (3, 11)]
    assert judged.images["image_id"].to_list() == sheet.images["image_id"][kept].to_list()
    for place, word in enumerate(judged.words):
        own = {template: column for template, column in columns[word].items() if column != 5}
        for row, image in enumerate(kept):
            cosine = np.mean([values[image, column, 0] for column in own.values()])
            plain = np.mean([values[image, columns[NEUTRAL][template], 0] for template in own])
            assert judged.cosine[row, place] == pytest.approx(cosine)
            assert judged.delta[row, place] == pytest.approx(cosine - plain)
