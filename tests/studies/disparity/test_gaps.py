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


def test_one_gap_among_many_concepts_is_shown_however_few_the_draws(object_world: World, measure: Measure, one: One):
    """A hundred shuffles cannot show one gap of thirty: the smallest p would be 30/101. So it gets more of them."""
    names = ("tie", *(f"thing {number}" for number in range(29)))
    results = measure(object_world(600, names, worse={("woman", "tie"): 1.4}), draws=100)
    gap = one(results, "ap_gap_matched", **PAIR, concept="tie")
    assert gap["p_value"] <= 0.05
    assert "p 0.0013 before" in gap["note"]  # 1 / (1 + 1.25 × 30 / 0.05)


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
    assert (others["p_value"] > 0.05).all()


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
