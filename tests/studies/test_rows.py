"""Rows that every benchmark makes: a mean with its interval, or the reason why it has none."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from beholder.metrics.bootstrap import Resampler
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.rows import NO_SPREAD, join, mean_row, people_shown, refusal_rows


def people(codes: list[int] | np.ndarray) -> Resampler:
    return Resampler(np.asarray(codes), np.random.default_rng(1), 500)


def test_a_mean_stands_within_its_interval_and_leaves_absent_values_aside():
    values = np.append(np.random.default_rng(2).random(9), np.nan)
    row = mean_row("m", values, people(np.arange(10)))
    assert (row.value, row.n, row.note) == (pytest.approx(np.nanmean(values)), 9, None)
    assert row.low < row.value < row.high


@pytest.mark.parametrize(("shown", "note"), [(4, "fewer than 5 people: no interval"), (5, None)])
def test_five_people_have_an_interval_and_four_the_reason_why_not(shown: int, note: str | None):
    """However many pictures there are of them."""
    values = np.random.default_rng(3).random(20)
    row = mean_row("m", values, people(np.arange(20) % shown))
    assert (row.note, np.isnan(row.low)) == (note, note is not None)
    alone = mean_row("m", values[:shown], people(np.arange(shown)))
    assert (alone.note, np.isnan(alone.low)) == (note, note is not None)


def test_scores_that_are_alike_and_images_that_are_not_there_say_so():
    assert mean_row("m", np.full(8, 0.3), people(np.arange(8))).note == NO_SPREAD
    absent = mean_row("m", np.full(3, np.nan), people(np.arange(3)))
    assert (absent.value, absent.n, absent.note) == (None, 0, "no image to measure")


def test_half_precision_is_taken_only_where_it_is_asked_for():
    values, everyone = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.61]), people(np.arange(6))
    assert mean_row("m", values, everyone).value == pytest.approx(values.mean(), abs=1e-12)
    half = mean_row("m", values, everyone, half=True).value
    assert half == float(np.float16(half)) != values.mean()


def test_a_name_is_one_person_within_a_branch_and_an_unnamed_image_someone_of_its_own():
    images = pl.DataFrame({"branch": list("aabbb"), "name": ["Ann", "Ann", "Ann", None, ""]})
    who = people_shown(images)
    assert who[0] == who[1] != who[2]
    assert len(set(who)) == 4
    assert len(set(people_shown(images.select("branch")))) == 5


def answered(refused: list[list[float]], groups: list[str | None]) -> ScoreMatrix:
    cells = np.array(refused)[:, :, None]
    images = pl.DataFrame({"image_id": [str(i) for i in range(len(groups))], "gender": groups})
    prompts = pl.DataFrame({"prompt_id": ["p", "q"]})
    return ScoreMatrix("t", images, prompts, ("refused",), cells)


def test_an_image_counts_as_refused_once_however_many_prompts_were():
    """Shares of several draws count as refused above one half; absent ones and unlabelled images for nothing."""
    cells = [[1, 1], [0.5, 0.5], [0, 0.6], [np.nan, 0], [0, 0], [1, 1]]
    matrix = answered(cells, ["woman", "woman", "man", "man", "man", None])
    rows = {row.group: row for row in refusal_rows("x", matrix, "gender")}
    assert {group: (row.value, row.n) for group, row in rows.items()} == {
        "woman": (0.5, 2),
        "man": (pytest.approx(1 / 3), 3),
    }
    expected = stats.binomtest(1, 3).proportion_ci(method="exact")
    assert (rows["man"].low, rows["man"].high) == pytest.approx((expected.low, expected.high))
    assert rows["man"].p_value == pytest.approx(stats.fisher_exact([[1, 1], [1, 2]]).pvalue)


def test_without_refusals_or_labels_there_are_no_rows():
    matrix = answered([[0, 0]], [None])
    assert list(refusal_rows("x", matrix, "gender")) == list(refusal_rows("x", matrix, "age")) == []


def test_notes_are_joined_and_no_note_is_none():
    assert join(["a", None, "b"]) == "a; b"
    assert join([None]) is None
