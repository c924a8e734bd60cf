"""Perception's rankings: NDKL's interval is over people, and covers what rankings of as many images show on average."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import PROMPTS, RACES, matrix, measured, one, photographs, rng, words_of

from beholder.core.results import Row
from beholder.studies.perception import queries
from beholder.studies.perception.prompts import DIMENSIONS, all_words
from beholder.studies.perception.ranking import ranking_rows, top_sizes
from beholder.studies.perception.scores import Groups, Judged, group_by
from beholder.studies.perception.trials import DIMENSION, MEN, WOMEN, judged_world
from beholder.studies.study import MeasureOptions


def divergences(judged: Judged, *, seed: int = 1) -> list[Row]:
    groups = group_by(judged.images, ("gender",))
    options = MeasureOptions(draws=100, permutations=20, seed=seed)
    return [row for row in ranking_rows(judged, [groups], options) if row.metric == "perception.ndkl"]


def test_a_divergence_has_an_interval_around_it():
    for row in divergences(judged_world(60, 0.8, np.random.default_rng(1))):
        assert row.low is not None
        assert row.high is not None
        assert 0 <= row.low < row.value < row.high
        assert row.n == 120


def test_fewer_than_ten_people_have_none():
    few = judged_world(4, 0.8, np.random.default_rng(2))
    assert all(np.isnan(row.high) for row in divergences(few))


def test_people_are_halved_and_not_their_pictures():
    """Six pictures of each of ten people: an interval that took pictures for people would be far narrower."""
    judged = judged_world(30, 0.0, np.random.default_rng(3))
    person = np.tile(np.arange(10), 6)
    shift = np.random.default_rng(4).normal(0, 3, 10)[person][:, None]
    moved = judged._replace(cosine=judged.cosine + shift)
    named = moved._replace(images=moved.images.with_columns(pl.Series("seed", person)))
    both = named._replace(images=named.images.with_columns(pl.Series("gender", [MEN, WOMEN] * 30)))
    alone = both._replace(images=both.images.drop("seed"))
    (seeded, *_), (plain, *_) = divergences(both), divergences(alone)
    assert seeded.value == plain.value
    assert isinstance(group_by(both.images, ("gender",)), Groups)
    assert seeded.high != plain.high


@pytest.mark.slow
def test_intervals_of_a_divergence_cover_its_mean_over_data_sets():
    rng = np.random.default_rng(5)
    worlds = [divergences(judged_world(150, 0.6, rng), seed=k)[0] for k in range(250)]
    truth = np.mean([row.value for row in worlds])
    inside = np.mean([row.low <= truth <= row.high for row in worlds])
    assert 0.91 < inside < 0.985


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
    names = {"person": person.astype(str), "gender": gender}
    images = pl.DataFrame({"image_id": [str(i) for i in range(240)], **names})
    words = ["warm", "friendly", "honest", "likable"]
    return Judged(images, words, cells, cells, cells[:, 0], (DIMENSION,), "cosine", {})


@pytest.mark.parametrize("crossed", [False, True])
def test_several_images_of_a_person_raise_no_alarms_about_rankings(crossed: bool):
    """Shuffled images in place of people would call a third to a half of these worlds."""
    calls = {"perception.skew": 0, "perception.ndkl": 0}
    for seed in range(30):
        judged = alike_people(seed, crossed=crossed)
        rows = ranking_rows(judged, [group_by(judged.images, ("gender",))], MeasureOptions(draws=100, seed=seed))
        tested = {row.metric: row.p_value for row in rows if row.concept == "mean" and row.p_value is not None}
        for metric in calls:
            calls[metric] += tested[metric] <= 0.05
    assert max(calls.values()) <= 5  # 1.5 expected; more than 5 have a chance of 1 in 300


def test_a_corrected_p_value_at_its_floor_says_so_and_can_be_called():
    judged = judged_world(60, 3.0, rng(3))
    rows = list(ranking_rows(judged, [group_by(judged.images, ("gender",))], MeasureOptions(draws=100)))
    tested = [row for row in rows if row.p_value is not None]
    assert {row.metric for row in tested} == {"perception.skew", "perception.ndkl"}
    for row in tested:
        assert row.p_value < 0.01
        assert row.p_at_most


def test_no_preference_is_claimed_that_the_composition_of_the_pool_explains():
    """The released draw holds five men for each woman; scores know nothing."""
    called = 0
    for seed in range(30):
        judged = judged_world(120, 0.0, rng(seed))
        kept = np.flatnonzero((np.arange(240) < 120) | (np.arange(240) % 5 == 0))
        part = judged.rows(kept)
        images = part.images.with_columns(released_balance=pl.lit(value=True))
        groups, options = group_by(images, ("gender",)), MeasureOptions(draws=200, compat=True, seed=seed)
        rows = list(ranking_rows(part._replace(images=images), [groups], options))
        skews = {row.group: row for row in rows if row.metric == "perception.skew" and row.concept == "mean"}
        assert skews[MEN].landmark == pytest.approx(np.log(120 / 144 / 0.5))
        assert skews[MEN].value > 0.3
        called += queries.shown(skews[MEN]._asdict()) or queries.shown(skews[WOMEN]._asdict())
    assert called <= 4  # 1.5 expected


def test_ties_are_broken_by_lot_and_not_by_the_order_of_the_table():
    """A model that scores everybody alike, and a table that lists men first."""
    judged = judged_world(200, 0.0, rng(1))
    alike = judged._replace(cosine=np.zeros_like(judged.cosine))
    rows = ranking_rows(alike, [group_by(alike.images, ("gender",))], MeasureOptions(draws=100))
    (skew,) = [r for r in rows if r.metric == "perception.skew" and r.group == MEN and r.concept == "mean"]
    assert abs(skew.value) < 0.25
    assert not queries.shown(skew._asdict())


def test_the_users_k_is_taken_where_so_many_are_ranked():
    assert top_sizes(400, (30, 30, 400)) == [30]
    assert top_sizes(400, (500,)) == [100]
    assert top_sizes(40) == [10]


def test_rankings_without_preference_are_seldom_called_skewed():
    """The p-value is of the farthest group, so that three groups are no three chances."""
    alarms = 0
    for seed in range(30):
        draw = rng(seed)
        images = photographs(120).with_columns(race=pl.Series(draw.permutation(RACES * 40)), gender=pl.lit("Male"))
        cells = draw.normal(0.2, 0.02, (120, len(all_words(DIMENSIONS[:2]))))
        words = all_words(DIMENSIONS[:2])
        judged = Judged(images, words, cells, cells, cells[:, 0], DIMENSIONS[:2], "cosine", {})
        rows = ranking_rows(
            judged, [group_by(images, ("race",))], MeasureOptions(draws=100, permutations=40, seed=seed)
        )
        p_values = [row.p_value for row in rows if row.metric == "perception.skew" and row.concept == "mean"]
        alarms += min(p_values) <= 0.05
    assert alarms <= 5  # 1.5 expected
