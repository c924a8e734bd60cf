"""Rows that every study makes: a mean with its interval, or the reason why it has none."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE
from beholder.core.results import Row
from beholder.metrics.intervals import Resampler
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.rows import NO_SPREAD, join, mean_row, refusal_rows
from beholder.studies.study import MeasureOptions


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


def answered(refused: list[list[float]] | np.ndarray, **labels: list[str | None]) -> ScoreMatrix:
    cells = np.array(refused, dtype=float)[:, :, None]
    images = pl.DataFrame({"image_id": [str(i) for i in range(len(cells))], **labels})
    prompts = pl.DataFrame({"prompt_id": ["p", "q"]})
    return ScoreMatrix("t", images, prompts, ("refused",), cells)


def refusals(matrix: ScoreMatrix, *attributes: str, within: tuple[str, ...] = ()) -> dict[tuple[str, str], Row]:
    asked = {attribute: (matrix, attribute) for attribute in attributes}
    rows = refusal_rows("x", asked, MeasureOptions(draws=100, shuffles=299), within=within)
    return {(row.subset, row.group): row for row in rows}


def test_an_image_counts_as_refused_once_however_many_prompts_were():
    """Shares of several draws count as refused above one half; absent ones and unlabelled images for nothing."""
    cells = [[1, 1], [0.5, 0.5], [0, 0.6], [np.nan, 0], [0, 0], [1, 1]]
    rows = refusals(answered(cells, gender=["woman", "woman", "man", "man", "man", None]), "gender")
    shares = {group: (row.value, row.n, row.verdict) for (_, group), row in rows.items()}
    assert shares == {"woman": (0.5, 2, TOO_LITTLE), "man": (pytest.approx(1 / 3), 3, TOO_LITTLE)}


def test_people_are_compared_and_not_their_pictures():
    """Ten women with ten pictures each are ten people; one woman with a hundred is one."""
    genders, cells = np.repeat(["woman", "man"], 100), np.repeat([[1.0, 0.0], [0.0, 0.0]], 100, axis=0)
    people = [f"{i // 10}" for i in range(200)]
    rows = refusals(answered(cells, gender=genders.tolist(), person=people), "gender", "age")
    assert set(rows) == {("gender", "man"), ("gender", "woman")}
    assert {row.verdict for row in rows.values()} == {DIFFERENCE}
    one_person = refusals(answered(cells, gender=genders.tolist(), person=["a"] * 100 + people[:100]), "gender")
    assert {row.verdict for row in one_person.values()} == {TOO_LITTLE}


def test_refusals_of_one_attribute_are_not_held_against_another_that_goes_with_it():
    rng = np.random.default_rng(4)
    gender = rng.permutation(np.repeat(["woman", "man"], 100))
    race = np.where(rng.random(200) < np.where(gender == "woman", 0.8, 0.2), "Black", "White")
    matrix = answered(np.column_stack([gender == "woman", np.zeros(200)]), gender=gender.tolist(), race=race.tolist())
    rows = refusals(matrix, "gender", "race", within=("gender", "race"))
    assert rows["gender", "woman"].verdict == DIFFERENCE
    assert rows["race", "Black"].verdict == NONE_FOUND


@pytest.mark.slow
def test_refusals_without_a_pattern_are_called_in_few_worlds():
    rng, called = np.random.default_rng(1), 0
    for _ in range(120):
        labels = {
            name: rng.choice(values, 60).tolist() for name, values in (("gender", list("wm")), ("race", list("abc")))
        }
        rows = refusals(answered(rng.random((60, 2)) < 0.2, **labels), "gender", "race")
        called += any(row.verdict == DIFFERENCE for row in rows.values())
    assert called <= 12


def test_without_refusals_or_labels_there_are_no_rows():
    matrix = answered([[0, 0]], gender=[None])
    assert refusals(matrix, "gender") == refusals(matrix, "age") == {}


def test_notes_are_joined_and_no_note_is_none():
    assert join(["a", None, "b"]) == "a; b"
    assert join([None]) is None
