"""Perception's rankings: NDKL's interval is over people, and covers what rankings of as many images show on average."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import PROMPTS, RACES, matrix, measured, one, photographs, rng, words_of

from beholder.core.results import Row
from beholder.studies.perception.prompts import DIMENSIONS, all_words
from beholder.studies.perception.ranking import ranking_rows
from beholder.studies.perception.scores import Groups, Judged, group_by
from beholder.studies.perception.trials import MEN, WOMEN, judged_world
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
@pytest.mark.parametrize(("n", "effect"), [(150, 0.6), (400, 0.6)])
def test_intervals_of_a_divergence_cover_its_mean_over_data_sets(n: int, effect: float):
    rng = np.random.default_rng(5)
    worlds = [divergences(judged_world(n, effect, rng), seed=k)[0] for k in range(250)]
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


def test_rankings_without_preference_are_seldom_called_skewed():
    """The p-value is of the farthest group, so that three groups are no three chances."""
    alarms = 0
    for seed in range(60):
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
    assert alarms <= 8  # 3 expected; more than 8 have a chance of 1 in 500
