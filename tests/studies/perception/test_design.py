"""Matched sets: blocks are not mixed, and effects and interactions are those that were put in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from causalface_imitation import imitate
from studies.perception.worlds import PROMPTS, designed, matrix, measured, one, rng

from beholder.comparison.family import DIFFERENCE
from beholder.datasets.faces import load_causalface as load
from beholder.studies.perception.design import matched_sets
from beholder.studies.perception.prompts import DIMENSIONS


def test_blocks_of_causalface_are_never_mixed(tmp_path: Path):
    images = load(imitate(tmp_path, seeds=2, alike=True)).table
    sets, _ = matched_sets(images, "race")
    for code in np.unique(sets)[:20]:
        members = images.filter(pl.Series(sets == code))
        assert members["varied"].n_unique() == 1
        assert sorted(members["race"]) == ["asian", "black", "white"]
    assert set(images.filter(pl.Series(matched_sets(images, "smiling")[0] >= 0))["varied"]) == {"smiling"}


@pytest.mark.slow
def test_effects_and_interactions_find_what_was_put_in():
    images = designed(8).filter(pl.col("lighting") == 0)
    prompts = PROMPTS
    cells = rng(9).normal(0.2, 0.01, (images.height, prompts.height))
    women, smile = (images["gender"] == "woman").to_numpy(), images["smiling"].to_numpy() / 4
    warm = prompts["concept"].is_in(DIMENSIONS[0].words).to_numpy()
    cells[:, warm] += (0.03 * smile + 0.02 * smile * women)[:, None]
    table = measured(matrix(images, cells))
    effect = one(table, "causal_effect", subset="smiling", group="4", against="0", concept="warmth")
    assert effect["low"] < 0.04 < effect["high"]
    assert effect["n"] == 8
    more = one(table, "interaction", subset="smiling × gender", group="man", against="woman", concept="warmth")
    assert more["low"] < -0.02 < more["high"]
    assert effect["verdict"] == more["verdict"] == DIFFERENCE
    share = one(table, "variance_share", subset="smiling", concept="warmth")
    assert share["value"] == max(
        table.filter(
            pl.col("metric") == "perception.variance_share", pl.col("concept") == "warmth", pl.col("subset") != "rest"
        )["value"]
    )
