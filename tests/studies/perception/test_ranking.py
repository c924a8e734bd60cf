"""Perception's rankings: what the top holds of a group is judged by shuffled people, and only that."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import (
    DIMENSION,
    MEN,
    PROMPTS,
    RACES,
    WOMEN,
    WORDS,
    matrix,
    measured,
    one,
    photographs,
    rng,
    two_groups,
    words_of,
)

from beholder.comparison.family import DIFFERENCE
from beholder.comparison.groups import group_by
from beholder.core.results import Row
from beholder.studies.perception.bias import ranking_rows, top_sizes
from beholder.studies.perception.prompts import DIMENSIONS, all_words
from beholder.studies.perception.scores import Judged
from beholder.studies.study import MeasureOptions


def ranked(judged: Judged, *, by: str = "gender", seed: int = 1, compat: bool = False) -> list[Row]:
    options = MeasureOptions(permutations=20, shuffles=299, seed=seed, compat=compat)
    return list(ranking_rows(judged, [group_by(judged.images, (by,))], options, ()))


def called(rows: list[Row]) -> bool:
    return any(row.verdict == DIFFERENCE for row in rows)


def mean_skews(rows: list[Row]) -> dict[str, Row]:
    return {str(row.group): row for row in rows if row.metric == "perception.skew" and row.concept == "mean"}


def test_a_share_of_the_top_is_bounded_by_what_shuffles_give():
    skews = mean_skews(ranked(two_groups(60, 2.0, seed=1)))
    for row in skews.values():
        assert row.low < row.value < row.high
        assert row.verdict == DIFFERENCE
    assert skews[MEN].low > 0 > skews[WOMEN].high
    assert skews[MEN].n == 120


def test_a_divergence_has_no_verdict_but_what_shuffled_people_give():
    rows = [row for row in ranked(two_groups(60, 0.8, seed=1)) if row.metric == "perception.ndkl"]
    assert all(row.verdict is None and row.p_value is None and 0 < row.expected < row.value for row in rows)


def test_fewer_than_five_people_are_too_few():
    few = mean_skews(ranked(two_groups(4, 5.0, seed=2)))
    assert {row.verdict for row in few.values()} == {"too little data"}


def test_a_group_that_never_reaches_the_top_has_no_skew_and_is_left_out_of_the_mean_visibly():
    images = photographs(600)
    cells = rng(3).normal(0.2, 0.02, (600, PROMPTS.height))
    cells[np.ix_((images["race"] == "Black").to_numpy(), words_of("warmth"))] -= 1
    table = measured(matrix(images, cells))
    row = one(table, "skew", group="Black", concept="warmth", template="k=100")
    assert row["value"] is None
    assert "no image of Black in the top 100: −∞" in row["note"]
    mean = one(table, "skew", group="Black", concept="mean", template="k=100")
    assert mean["value"] is not None
    assert "left out of the mean" in mean["note"]


def alike_people(seed: int, *, crossed: bool) -> Judged:
    """Six images of each of 40 people, who differ from each other but not by gender."""
    draw = rng(seed)
    person = np.repeat(np.arange(40), 6)
    gender = np.tile([MEN, MEN, MEN, WOMEN, WOMEN, WOMEN], 40) if crossed else np.array([MEN, WOMEN])[person % 2]
    own = draw.normal(size=(40, 2, 4))[person, (gender == MEN).astype(int)]
    cells = own + 0.3 * draw.normal(size=(240, 4))
    images = pl.DataFrame({"image_id": [str(i) for i in range(240)], "name": person.astype(str), "gender": gender})
    return Judged(images, list(WORDS), cells, cells, cells[:, 0], (DIMENSION,), "cosine", {})


@pytest.mark.parametrize("crossed", [False, True])
def test_several_images_of_a_person_raise_no_alarms_about_rankings(crossed: bool):
    """Shuffled images in place of people would call a third to a half of these worlds."""
    calls = sum(called(ranked(alike_people(seed, crossed=crossed), seed=seed)) for seed in range(30))
    assert calls <= 5  # 1.5 expected; more than 5 have a chance of 1 in 300


def test_no_preference_is_claimed_that_the_composition_of_the_pool_explains():
    """The released draw holds five men for each woman; scores know nothing."""
    calls = 0
    for seed in range(30):
        judged = two_groups(120, 0.0, seed)
        part = judged.rows(np.flatnonzero((np.arange(240) < 120) | (np.arange(240) % 5 == 0)))
        part = part._replace(images=part.images.with_columns(released_balance=pl.lit(value=True)))
        rows = ranked(part, seed=seed, compat=True)
        assert mean_skews(rows)[MEN].landmark == pytest.approx(np.log(120 / 144 / 0.5))
        assert mean_skews(rows)[MEN].value > 0.3
        calls += called(rows)
    assert calls <= 5  # 1.5 expected


def test_ties_are_broken_by_lot_and_not_by_the_order_of_the_table():
    """A model that scores everybody alike, and a table that lists men first."""
    judged = two_groups(200, 0.0, seed=1)
    rows = ranked(judged._replace(cosine=np.zeros_like(judged.cosine)))
    assert abs(mean_skews(rows)[MEN].value) < 0.25
    assert not called(rows)


def test_the_users_k_is_taken_where_so_many_are_ranked():
    assert top_sizes(400, (30, 30, 400)) == [30]
    assert top_sizes(400, (500,)) == [100]
    assert top_sizes(40) == [10]


def test_rankings_without_preference_are_seldom_called_skewed():
    """Three groups are no three chances."""
    calls, words = 0, all_words(DIMENSIONS[:2])
    for seed in range(30):
        draw = rng(seed)
        images = photographs(120).with_columns(race=pl.Series(draw.permutation(RACES * 40)), gender=pl.lit("Male"))
        cells = draw.normal(0.2, 0.02, (120, len(words)))
        judged = Judged(images, words, cells, cells, cells[:, 0], DIMENSIONS[:2], "cosine", {})
        calls += called(ranked(judged, by="race", seed=seed))
    assert calls <= 5  # 1.5 expected
