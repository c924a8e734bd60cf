"""Induced variation: pairs differ in one attribute alone, and pairs of one identity are drawn together."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from studies.perception.worlds import OPTIONS, PROMPTS, designed, matrix, measured, one, rng

from beholder.studies.perception.induced import Drawn, chance_of_more, draw_pairs
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import read_judged
from beholder.studies.study import MeasureOptions


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
    cells[:, (prompts["concept"] != "").to_numpy()] += 0.004 * images["smiling"].to_numpy()[:, None]
    table = measured(matrix(images, cells))
    first, second = draw_pairs(images, "smiling", OPTIONS.rng())
    judged = read_judged(matrix(images, cells), DIMENSIONS)
    scores = judged.by_dimension(judged.delta)
    expected = np.median(np.abs(scores[first, 0] - scores[second, 0]))
    row = one(table, "induced_variation", subset="smiling", concept="warmth")
    assert row["value"] == pytest.approx(expected)
    assert row["low"] <= row["value"] <= row["high"]
    test = one(table, "induced_variation_test", group="age", against="smiling")
    assert test["value"] < 0.4
    assert test["p_value"] < 0.01
    assert test["high"] < 0.5
    assert test["n"] == 2 * 8000


def test_the_chance_of_more_equals_that_of_scipy_and_its_error_that_of_the_loop():
    draw = np.random.default_rng(2)
    first = Drawn(draw.random((40, 3)), np.sort(draw.integers(8, size=(40, 2)), axis=1))
    second = Drawn(draw.random((30, 3)) ** 1.5, np.repeat(draw.integers(8, size=(30, 1)), 2, axis=1))
    found = chance_of_more(first, second)
    a, b = first.apart.ravel(), second.apart.ravel()
    assert found.value == pytest.approx(stats.mannwhitneyu(a, b).statistic / (a.size * b.size))
    pulls = [(np.mean([[x > y for y in b] for x in row]) - found.value) / 40 for row in first.apart]
    pulls += [(1 - found.value - np.mean([[y > x for x in a] for y in row])) / 30 for row in second.apart]
    seeds = [set(pair) for pair in [*first.seeds.tolist(), *second.seeds.tolist()]]
    variance = sum(pulls[i] * pulls[j] for i in range(70) for j in range(70) if seeds[i] & seeds[j])
    margin = stats.t.ppf(0.975, 7) * np.sqrt(variance * 8 / 7)
    assert found.high - found.value == pytest.approx(margin)


def test_noise_is_seldom_called_although_pairs_repeat_identities():
    """Six identities whose noise differs: a rank-sum over pairs as if independent would call many of these."""
    images, called, naive = designed(6, lighting=0, pose=0, age=45), 0, 0
    scores_of = np.unique(images["seed"].to_numpy(), return_inverse=True)[1]
    for seed in range(30):
        draw = np.random.default_rng(seed)
        scores = draw.normal(size=(images.height, 8)) * draw.gamma(1.0, 1.0, 6)[scores_of][:, None]
        drawn = {}
        for attribute in ("gender", "smiling"):
            one_of, other = draw_pairs(images, attribute, draw, 300)
            drawn[attribute] = Drawn(
                np.abs(scores[one_of] - scores[other]), scores_of[np.stack([one_of, other], axis=1)]
            )
        called += chance_of_more(*drawn.values()).p_value <= 0.05
        naive += stats.mannwhitneyu(*(each.apart.ravel() for each in drawn.values())).pvalue <= 0.05
    assert called <= 5
    assert naive > 10


def test_compat_tests_all_values_as_if_they_were_independent():
    images = designed(6, lighting=0, pose=0)
    table = measured(matrix(images), options=MeasureOptions(compat=True, draws=100))
    tests = table.filter(metric="perception.induced_variation_test")
    assert set(tests["variant"]) == {"as released"}
    assert tests["low"].null_count() == tests.height


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
