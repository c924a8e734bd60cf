"""Induced variation: pairs differ in one attribute alone, and pairs of one identity are drawn together."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import OPTIONS, PROMPTS, designed, matrix, measured, one, rng

from beholder.studies.perception.induced import draw_pairs
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import read_judged


def test_pairs_differ_in_one_attribute_alone_and_far_enough():
    images = designed(3)
    for attribute in ("smiling", "gender", "seed", "pose"):
        first, second = draw_pairs(images, attribute, rng(), 200)
        assert len(first) == 200
        others = [
            name for name in ("gender", "skin_tone", "seed", "age", "smiling", "lighting", "pose") if name != attribute
        ]
        assert images[first.tolist()].select(others).equals(images[second.tolist()].select(others))
        assert (images[attribute].to_numpy()[first] != images[attribute].to_numpy()[second]).all()


def test_induced_variation_is_the_median_absolute_difference_and_is_tested_by_rank_sums():
    images = designed(6).filter(pl.col("lighting") == 0)
    prompts = PROMPTS
    cells = rng(7).normal(0.2, 0.004, (images.height, prompts.height))
    cells[:, (prompts["concept"] != "").to_numpy()] += 0.02 * images["smiling"].to_numpy()[:, None]
    table = measured(matrix(images, cells))
    first, second = draw_pairs(images, "smiling", OPTIONS.rng())
    judged = read_judged(matrix(images, cells), DIMENSIONS)
    scores = judged.by_dimension(judged.delta)
    expected = np.median(np.abs(scores[first, 0] - scores[second, 0]))
    row = one(table, "induced_variation", subset="smiling", concept="warmth")
    assert row["value"] == pytest.approx(expected)
    assert row["low"] <= row["value"] <= row["high"]
    test = one(table, "induced_variation_test", group="age", against="smiling")
    assert test["value"] < 0.1
    assert test["p_value"] < 1e-6


def test_pairs_of_one_identity_are_drawn_together():
    """Six identities, 1,000 pairs: an interval that took pairs for people would be far too narrow."""
    images = designed(6, lighting=0, pose=0)
    seed = np.unique(images["seed"].to_numpy(), return_inverse=True)[1]
    drawn = np.random.default_rng(1).normal(0.2, 1.0, (images.height, PROMPTS.height))
    reacts = np.array([0.1, 0.1, 0.1, 3.0, 3.0, 3.0])[seed][:, None]  # half of them move a lot, half hardly
    table = measured(matrix(images, drawn * reacts))
    row = table.filter(
        (pl.col("metric") == "perception.induced_variation")
        & (pl.col("subset") == "smiling")
        & (pl.col("concept") == "mean")
    ).row(0, named=True)
    assert row["high"] > 5 * row["low"]
