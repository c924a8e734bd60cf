"""A sheet of scores is cut by images and prompts, and gives the quantities of its channels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.core.errors import BeholderError
from beholder.scores.score_matrix import ScoreMatrix

IMAGES = pl.DataFrame({"image_id": list("abc")})
PROMPTS = pl.DataFrame({"prompt_id": list("wxyz"), "level": ["one", "two", "one", "two"]})


def sheet(*channels: str, **settings: float) -> ScoreMatrix:
    values = np.arange(12.0 * len(channels), dtype=np.float32).reshape(3, 4, len(channels))
    return ScoreMatrix("task", IMAGES, PROMPTS, channels, values, settings)


def test_cells_that_do_not_fit_the_tables_are_refused():
    with pytest.raises(BeholderError, match=r"shape \(3, 3, 1\), the tables ask for \(3, 4, 1\)"):
        ScoreMatrix("task", IMAGES, PROMPTS, ("cosine",), np.zeros((3, 3, 1)))


def test_a_sheet_gives_the_quantities_of_its_channels():
    matrix = sheet("cosine", logit_scale=100.0)
    np.testing.assert_array_equal(matrix.logits, 100.0 * np.arange(12.0).reshape(3, 4))
    assert matrix.gives("logit")
    assert not matrix.gives("probability")


def test_answers_are_the_probabilities_of_yes_and_no():
    matrix = sheet("log_p_yes", "log_p_no", "log_p_true", "refused")
    yes, no = matrix.answers() or ()
    np.testing.assert_array_equal(yes, np.exp(np.arange(0.0, 48.0, 4).reshape(3, 4)))
    np.testing.assert_array_equal(no, np.exp(np.arange(1.0, 48.0, 4).reshape(3, 4)))
    np.testing.assert_array_equal(matrix.single_token(), np.exp(np.arange(2.0, 48.0, 4).reshape(3, 4)))
    assert matrix.refused().all()


def test_a_model_of_vectors_neither_answers_nor_refuses():
    matrix = sheet("cosine")
    assert (matrix.answers(), matrix.single_token(), matrix.refused()) == (None, None, None)


@pytest.mark.parametrize("keep", [np.array([True, False, True]), np.array([0, 2])])
def test_images_are_kept_with_their_cells(keep: np.ndarray):
    part = sheet("cosine").rows(keep)
    assert part.images["image_id"].to_list() == ["a", "c"]
    assert part.channel("cosine")[:, 0].tolist() == [0.0, 8.0]


@pytest.mark.parametrize("keep", [np.array([False, True, False, True]), np.array([1, 3])])
def test_prompts_are_kept_with_their_cells(keep: np.ndarray):
    part = sheet("cosine").columns(keep)
    assert part.prompts["prompt_id"].to_list() == ["x", "z"]
    assert part.channel("cosine")[0].tolist() == [1.0, 3.0]
    assert part.prompts.equals(sheet("cosine").level("two").prompts)


def test_an_image_without_one_of_its_scores_is_not_complete():
    matrix = sheet("cosine", "area")
    matrix.values[1, 3, 0] = np.nan
    assert matrix.complete_rows().images["image_id"].to_list() == ["a", "c"]
