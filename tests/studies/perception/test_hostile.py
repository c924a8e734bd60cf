"""Perception where there is little to go by: no interval without people, none without a value, no warning."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.audit import measure
from beholder.glasshouse.design import design
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.perception.prompts import perception_prompts
from beholder.studies.perception.study import PERCEPTION
from beholder.studies.study import MeasureOptions

PROMPTS = perception_prompts().table


def photographs(count: int) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "image_id": [f"{i}.jpg" for i in range(count)],
            "uri": [""] * count,
            "race": rng.choice(["White", "Black", "Asian"], count),
            "gender": rng.choice(["Male", "Female"], count),
            "age": rng.choice([25.0, 35.0, 45.0, 55.0], count),
        }
    )


def lone_group() -> pl.DataFrame:
    race = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("Asian")).otherwise(pl.lit("White"))
    return photographs(60).with_columns(race=race)


def one_seed() -> pl.DataFrame:
    table = pl.DataFrame(design(1)).filter((pl.col("lighting") == 0) & (pl.col("pose") == 0))
    return table.with_columns(uri=pl.lit("/nowhere/") + pl.col("image_id"))


def results(images: pl.DataFrame, values: np.ndarray | None = None) -> pl.DataFrame:
    drawn = np.random.default_rng(1).normal(0.2, 0.01, (images.height, PROMPTS.height))
    cells = drawn if values is None else values
    sheet = ScoreMatrix("perception", images, PROMPTS, ("cosine",), cells[:, :, None])
    options = MeasureOptions(draws=100, permutations=20)
    return measure(PERCEPTION, [sheet], options, model="m", dataset="d")


@pytest.mark.parametrize(
    "images",
    [photographs(2), photographs(5), photographs(60), lone_group(), one_seed()],
    ids=["two images", "five images", "sixty", "a group of one", "one seed"],
)
def test_intervals_hold_their_value_have_a_width_and_stand_with_a_value(images: pl.DataFrame):
    found = results(images)
    bounded = found.drop_nulls("low")
    assert bounded.filter(pl.col("value").is_null()).is_empty()
    assert bounded.filter(pl.col("low") > pl.col("value") + 1e-9).is_empty()
    assert bounded.filter(pl.col("high") < pl.col("value") - 1e-9).is_empty()
    assert bounded.filter(pl.col("high") - pl.col("low") < 1e-12).is_empty()
    assert found.filter(pl.col("value").is_null() & pl.col("note").is_null()).is_empty()


def test_scores_that_are_all_alike_give_rows_without_warnings():
    """Warnings are errors here."""
    found = results(photographs(60), np.full((60, PROMPTS.height), 0.2))
    row = found.filter(pl.col("metric") == "perception.narrowing").row(0, named=True)
    assert row["value"] is None
    assert "alike" in row["note"]
    tests = found.filter(pl.col("metric") == "perception.neutral_test")
    assert tests["value"].is_null().all()


def test_pairs_of_one_identity_are_drawn_together():
    """Six identities, 1,000 pairs: an interval that took pairs for people would be far too narrow."""
    table = pl.DataFrame(design(6)).filter((pl.col("lighting") == 0) & (pl.col("pose") == 0))
    table = table.with_columns(uri=pl.lit("/nowhere"))
    seed = np.unique(table["seed"].to_numpy(), return_inverse=True)[1]
    drawn = np.random.default_rng(1).normal(0.2, 1.0, (table.height, PROMPTS.height))
    reacts = np.array([0.1, 0.1, 0.1, 3.0, 3.0, 3.0])[seed][:, None]  # half of them move a lot, half hardly
    found = results(table, drawn * reacts)
    row = found.filter(
        (pl.col("metric") == "perception.induced_variation")
        & (pl.col("subset") == "smiling")
        & (pl.col("concept") == "mean")
    ).row(0, named=True)
    assert row["high"] > 5 * row["low"]
