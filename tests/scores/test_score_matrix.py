"""A sheet of scores is cut by images and prompts, and read as the logits that its model means."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.core.errors import BeholderError
from beholder.scores.score_matrix import LOGIT_CHANNELS, ScoreMatrix

IMAGES = pl.DataFrame({"image_id": list("abc")})
PROMPTS = pl.DataFrame({"prompt_id": list("wxyz"), "level": ["one", "two", "one", "two"]})


def sheet(*channels: str, **settings: float) -> ScoreMatrix:
    values = np.arange(12.0 * len(channels), dtype=np.float32).reshape(3, 4, len(channels))
    return ScoreMatrix("task", IMAGES, PROMPTS, channels, values, settings)


def test_cells_that_do_not_fit_the_tables_are_refused():
    with pytest.raises(BeholderError, match=r"shape \(3, 3, 1\), the tables ask for \(3, 4, 1\)"):
        ScoreMatrix("task", IMAGES, PROMPTS, ("cosine",), np.zeros((3, 3, 1)))


def test_a_cosine_becomes_a_logit_by_the_checkpoints_scale_and_bias():
    found = sheet("cosine", logit_scale=100.0, logit_bias=-10.0).logits
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, 100.0 * np.arange(12.0).reshape(3, 4) - 10.0)
    np.testing.assert_array_equal(sheet("cosine").logits, np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize("name", LOGIT_CHANNELS)
def test_a_logit_is_taken_as_it_stands_whatever_the_scale(name: str):
    matrix = sheet("refused", name, logit_scale=100.0, logit_bias=5.0)
    assert matrix.has_logits
    np.testing.assert_array_equal(matrix.logits, np.arange(1.0, 24.0, 2).reshape(3, 4))


def test_presence_is_no_logit():
    matrix = sheet("presence", "area")
    assert not matrix.has_logits
    with pytest.raises(BeholderError, match="gives only presence, area"):
        _ = matrix.logits


@pytest.mark.parametrize("keep", [np.array([True, False, True]), np.array([0, 2])])
def test_images_are_kept_with_their_cells(keep: np.ndarray):
    found = sheet("cosine").rows(keep)
    assert found.images["image_id"].to_list() == ["a", "c"]
    assert found.channel("cosine")[:, 0].tolist() == [0.0, 8.0]


@pytest.mark.parametrize("keep", [np.array([False, True, False, True]), np.array([1, 3])])
def test_prompts_are_kept_with_their_cells(keep: np.ndarray):
    found = sheet("cosine").columns(keep)
    assert found.prompts["prompt_id"].to_list() == ["x", "z"]
    assert found.channel("cosine")[0].tolist() == [1.0, 3.0]
    assert found.prompts.equals(sheet("cosine").level("two").prompts)


def test_an_image_without_one_of_its_scores_is_not_complete():
    matrix = sheet("cosine", "area")
    matrix.values[1, 3, 0] = np.nan
    assert matrix.complete_rows().images["image_id"].to_list() == ["a", "c"]
