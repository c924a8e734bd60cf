"""Gaps of average precision on made-up images where the answer is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score

from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity import queries
from beholder.studies.disparity.scores import read_concept_scores

PAIR = {"group": "man", "against": "woman"}
CONCEPTS = ("tie", "handbag", "dog", "chair")
One = Callable[..., dict[str, Any]]
Measure = Callable[..., pl.DataFrame]
World = Callable[..., ScoreMatrix]


def test_average_precision_is_scikit_learns_in_every_group(matrix: ScoreMatrix, results: pl.DataFrame, one: One):
    for group in ("man", "woman"):
        for column, concept in enumerate(CONCEPTS):
            members = (matrix.images["gender"] == group).to_numpy()
            with_it = set(matrix.dataset.objects.filter(pl.col("concept") == concept)["image_id"])
            shows = matrix.images["image_id"].is_in(list(with_it)).to_numpy()[members]
            scores = matrix.values[members, column, 0].astype(float)
            scores[scores < 0.1] = 0.0  # boxes under 0.1 are dropped
            row = one(results, "average_precision", group=group, concept=concept)
            assert row["value"] == pytest.approx(average_precision_score(shows, scores), abs=1e-9)
            assert row["n"] == 300
            assert one(results, "prevalence", group=group, concept=concept)["value"] == pytest.approx(shows.mean())


def test_a_planted_gap_is_found_and_nothing_else(results: pl.DataFrame, one: One):
    gap = one(results, "ap_gap_matched", **PAIR, concept="tie")
    assert gap["low"] > 0.1
    assert gap["p_value"] < 0.05
    assert gap["landmark"] == 0
    assert one(results, "gaps_shown", **PAIR)["value"] == 1
    raw = one(results, "ap_gap", **PAIR, concept="tie")["value"]
    both = [one(results, "average_precision", group=group, concept="tie")["value"] for group in ("man", "woman")]
    assert raw == pytest.approx(both[0] - both[1])


def test_a_gap_of_prevalence_vanishes_when_matched(results: pl.DataFrame, one: One):
    raw, matched = (one(results, metric, **PAIR, concept="dog") for metric in ("ap_gap", "ap_gap_matched"))
    assert raw["low"] > 0
    assert matched["low"] < 0 < matched["high"]
    assert "points due to the counts alone removed" in matched["note"]


def test_the_mean_is_over_concepts_and_the_spread_comes_with_that_of_chance(results: pl.DataFrame, one: One):
    man = [one(results, "average_precision", group="man", concept=concept)["value"] for concept in CONCEPTS]
    assert one(results, "mean_average_precision", group="man")["value"] == pytest.approx(np.mean(man))
    gaps = [one(results, "ap_gap_matched", **PAIR, concept=concept)["value"] for concept in CONCEPTS]
    assert one(results, "gap_spread", **PAIR)["value"] == pytest.approx(np.mean(np.abs(gaps)))
    expected = one(results, "gap_spread_expected", **PAIR)
    assert expected["low"] < expected["value"] < expected["high"] < np.mean(np.abs(gaps))


def matched_gap(scores: np.ndarray, present: np.ndarray, first: np.ndarray) -> float:
    """With scikit-learn: images without the concept are weighted until both groups show it equally often."""
    both = []
    for members in (first, ~first):
        s, p = scores[members], present[members]
        odds = (1 - present.mean()) / present.mean() * p.sum() / (~p).sum()
        both.append(average_precision_score(p, s, sample_weight=np.where(p, 1.0, odds)))
    return both[0] - both[1]


def test_the_tests_of_all_gaps_together_equal_plain_shuffles(object_world: World, measure: Measure, one: One):
    """The mean and the mean width, against 300 shuffles written out: among images with the concept, and without."""
    whole = object_world(160, ("tie", "dog"), {("woman", "tie"): 0.8, ("woman", "dog"): 0.3}, channel="cosine", seed=7)
    results = measure(whole, draws=2000)
    data, rng, world = read_concept_scores(whole, None), np.random.default_rng(1), []
    for draw in range(301):
        labels = np.stack([data.codes, data.codes], axis=1)
        for column in range(2 if draw else 0):
            for part in (data.present[:, column], ~data.present[:, column]):
                labels[part, column] = rng.permutation(data.codes[part])
        world.append([matched_gap(data.scores[:, j], data.present[:, j], labels[:, j] == 0) for j in range(2)])
    gaps = np.array(world) - np.mean(world[1:], axis=0)
    means, widths = gaps.mean(axis=1), np.abs(gaps).mean(axis=1)
    mean, width = (one(results, metric, **PAIR) for metric in ("mean_ap_gap_matched", "gap_spread"))
    assert mean["value"] == pytest.approx(means[0], abs=0.01)
    assert mean["p_value"] == pytest.approx((np.abs(means[1:]) >= abs(means[0])).mean(), abs=0.09)
    assert width["value"] == pytest.approx(widths[0], abs=0.01)
    assert width["p_value"] == pytest.approx((widths[1:] >= widths[0]).mean(), abs=0.09)
    assert width["expected"] == one(results, "gap_spread_expected", **PAIR)["value"]


def test_bounds_for_all_concepts_are_wider_than_those_of_one(results: pl.DataFrame, one: One):
    metrics = "ap_gap_matched", "ap_gap_simultaneous"
    alone, together = (one(results, metric, **PAIR, concept="tie") for metric in metrics)
    assert alone["value"] == together["value"]
    assert together["low"] < alone["low"] < alone["high"] < together["high"]


def test_one_rule_decides_how_many_gaps_are_shown(full: pl.DataFrame, three_groups: pl.DataFrame):
    for results in (full, three_groups):
        for pair in queries.pairs(results):
            (count,) = queries.of_pair(results, pair).filter(metric="disparity.gaps_shown")["value"]
            assert count == queries.tested(results, pair)["shown"].sum()


def test_one_gap_among_many_concepts_is_shown_however_few_the_draws(object_world: World, measure: Measure, one: One):
    """A hundred shuffles cannot show one gap of thirty: the smallest p would be 30/101. So it gets more of them."""
    names = ("tie", *(f"thing {number}" for number in range(29)))
    results = measure(object_world(600, names, worse={("woman", "tie"): 1.4}), draws=100)
    gap = one(results, "ap_gap_matched", **PAIR, concept="tie")
    assert gap["p_value"] <= 0.05
    assert gap["p_value"] == pytest.approx(30 / 3000)  # of shuffles_for(30) = 2999, none is as wide
    assert gap["p_at_most"]


def test_a_concept_that_few_images_show_has_a_value_but_no_test(object_world: World, measure: Measure, one: One):
    rare = {("man", "tie"): 0.015, ("woman", "tie"): 0.3, ("man", "dog"): 0.0, ("woman", "chair"): 1.0}
    results = measure(object_world(200, rare=rare, seed=3))
    tie, dog, chair = (one(results, "ap_gap_matched", **PAIR, concept=name) for name in ("tie", "dog", "chair"))
    assert tie["value"] is not None
    assert (tie["low"], tie["p_value"]) == (None, None)
    assert "fewer than 5" in tie["note"]
    assert dog["value"] is None
    assert "no image of one group shows it" in dog["note"]
    assert chair["value"] is None
    assert "every image of one group shows it" in chair["note"]
    assert one(results, "ap_gap", **PAIR, concept="chair")["value"] is not None


def test_each_of_three_groups_is_compared_with_the_rest_and_the_largest_pair_is_named(
    three_groups: pl.DataFrame, one: One
):
    assert one(three_groups, "ap_gap_matched", group="b", against="the rest", concept="tie")["high"] < 0
    largest = one(three_groups, "ap_gap_largest", concept="tie")
    assert largest["group"] in ("a", "c")
    assert largest["against"] == "b"
    assert largest["p_value"] < 0.05
    others = three_groups.filter(pl.col("metric") == "disparity.ap_gap_largest", pl.col("concept") != "tie")
    assert (others["p_value"] > largest["p_value"]).all()


def test_a_detector_without_an_error_has_no_interval_of_width_0(object_world: World, measure: Measure, one: One):
    """A value that no draw changes says nothing about other images."""
    whole = object_world(200)
    present = read_concept_scores(whole, None).present
    results = measure(replace(whole, values=present[:, :, None].astype(np.float32)))
    for metric in ("ece", "brier", "ece_adaptive"):
        row = one(results, metric, group="man", concept="tie")
        assert row["value"] == 0
        assert row["low"] is None
    assert one(results, "ap_gap_matched", concept="tie")["low"] is None
    assert "without an error" in one(results, "ap_gap_matched", concept="tie")["note"]


def test_a_concept_without_scores_for_a_group_says_so(object_world: World, measure: Measure, one: One):
    whole = object_world(200)
    values = whole.values.copy()
    values[(whole.images["gender"] == "man").to_numpy(), 0] = np.nan
    row = one(measure(replace(whole, values=values)), "prevalence", group="man", concept="tie")
    assert row["value"] is None
    assert "no image of the group has a score" in row["note"]
