"""Gaps of average precision on made-up images where the answer is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score

from beholder.comparison.family import DIFFERENCE, NONE_FOUND
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity import findings
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
    assert raw["value"] > 0.1
    assert raw["verdict"] is None  # as published: it is described
    assert matched["low"] < 0 < matched["high"]
    assert matched["verdict"] == NONE_FOUND
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


@pytest.mark.slow
def test_the_tests_equal_plain_shuffles(object_world: World, measure: Measure, one: One):
    """Gaps, mean and mean width against 300 shuffles written out: among images with the concept, and without."""
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
    deviates = np.abs(np.column_stack([gaps, means])) / np.column_stack([gaps, means])[1:].std(axis=0)
    together = [(deviates[1:].max(axis=1) >= own).mean() for own in deviates[0]]
    names = (
        ("ap_gap_matched", {"concept": "tie"}),
        ("ap_gap_matched", {"concept": "dog"}),
        ("mean_ap_gap_matched", {}),
    )
    rows = [one(results, metric, **PAIR, **where) for metric, where in names]
    assert [row["value"] for row in rows] == pytest.approx([*gaps[0], means[0]], abs=0.01)
    assert [row["p_value"] for row in rows] == pytest.approx(together, abs=0.12)
    width = one(results, "gap_spread", **PAIR)
    assert width["value"] == pytest.approx(widths[0], abs=0.01)
    share = (widths[1:] >= widths[0]).mean()
    assert share - 0.09 < width["p_value"] < 2 * share + 0.09  # on the safe side
    assert width["expected"] == one(results, "gap_spread_expected", **PAIR)["value"]


def test_bounds_leave_out_0_where_a_difference_was_found(full: pl.DataFrame, three_groups: pl.DataFrame):
    for results in (full, three_groups):
        gaps = results.filter(pl.col("metric") == "disparity.ap_gap_matched")
        found = (gaps["verdict"] == DIFFERENCE).to_list()
        assert found == ((gaps["low"] > 0) | (gaps["high"] < 0)).to_list() == (gaps["p_value"] <= 0.05).to_list()
        for pair in findings.pairs(results):
            (count,) = findings.of_pair(results, pair).filter(metric="disparity.gaps_shown")["value"]
            assert count == findings.tested(results, pair)["found"].sum()


@pytest.mark.slow
def test_one_gap_among_many_concepts_is_found(object_world: World, measure: Measure, one: One):
    names = ("tie", *(f"thing {number}" for number in range(29)))
    results = measure(object_world(600, names, worse={("woman", "tie"): 1.4}), draws=100)
    gap = one(results, "ap_gap_matched", **PAIR, concept="tie")
    assert gap["verdict"] == DIFFERENCE
    assert one(results, "gaps_shown", **PAIR)["value"] == 1


def with_people(whole: ScoreMatrix, column: str, people: np.ndarray, scores: np.ndarray) -> ScoreMatrix:
    """The matrix with scores of its own, and a column that says who is shown."""
    table = whole.images.with_columns(pl.Series(column, people.astype(str)))
    values = scores[:, :, None].astype(np.float32)
    return replace(whole, images=table, values=values, dataset=replace(whole.dataset, table=table))


@pytest.mark.parametrize("column", ["person", "name"])
def test_a_fixed_vector_per_person_gives_nothing(object_world: World, measure: Measure, column: str):
    """Twelve pictures of each person, some with a concept and some without, have the same scores."""
    found = []
    for seed in range(12):
        whole, rng = object_world(480, ("tie", "dog"), channel="cosine", seed=seed), np.random.default_rng(seed)
        people = np.arange(480) // 24 * 2 + np.arange(480) % 2
        vectors = rng.standard_normal((40, 2))[people]
        gaps = measure(with_people(whole, column, people, vectors), shuffles=299, draws=100)
        found.append(
            (gaps.filter(pl.col("metric").str.contains("ap_gap_matched|gap_spread"))["verdict"] == DIFFERENCE).any()
        )
    assert sum(found) <= 2


def test_a_concept_ranked_perfectly_for_one_group_and_at_random_for_the_other_is_found(
    object_world: World, measure: Measure, one: One
):
    """60 men and 60 women, in four data sets: the group without an error has an interval too."""
    for seed in range(4):
        whole = object_world(120, ("tie",), channel="cosine", seed=seed)
        data, rng = read_concept_scores(whole, None), np.random.default_rng(seed)
        scores = np.where(data.codes[:, None] == 0, data.present, rng.random((120, 1)))
        gap = one(
            measure(replace(whole, values=scores[:, :, None].astype(np.float32))), "ap_gap_matched", concept="tie"
        )
        assert gap["verdict"] == DIFFERENCE
        assert 0 < gap["low"] < gap["value"] < gap["high"] <= 1


@pytest.mark.parametrize("each", [5, 10])
def test_a_concept_always_found_for_one_group_and_never_for_the_other_is_found(
    object_world: World, measure: Measure, one: One, each: int
):
    """As many images of both groups with it as without it."""
    whole = object_world(4 * each, ("tie",), channel="cosine")
    who = (whole.images["gender"] == "man").to_numpy()
    shows = np.arange(4 * each) // 2 % 2 == 0
    ids = whole.images["image_id"].filter(pl.Series(shows))
    objects = pl.DataFrame({"image_id": ids, "concept": "tie"}).select(
        *whole.dataset.objects.columns[:2],
        instances=pl.lit(1, pl.Int32),
        area=pl.lit(0.1, pl.Float32),
        names=pl.lit(["tie"]),
    )
    matrix = replace(
        whole, dataset=replace(whole.dataset, objects=objects), values=(who & shows)[:, None, None].astype(np.float32)
    )
    gap = one(measure(matrix), "ap_gap_matched", concept="tie")
    assert gap["verdict"] == DIFFERENCE
    assert gap["low"] < gap["value"]


def test_gaps_that_a_source_explains_are_not_held_against_the_groups(object_world: World, measure: Measure, one: One):
    """Four of five men are of one source, in which ties are seen better; women the other way round."""
    whole = object_world(400, ("tie",), channel="cosine", seed=3)
    data, rng = read_concept_scores(whole, None), np.random.default_rng(33)
    first = (rng.random(400) < 0.8) == (data.codes == 0)
    scores = rng.standard_normal((400, 1)) + 3 * (first[:, None] & data.present)
    table = whole.images.with_columns(source=pl.Series(np.where(first, "x", "y")))
    values = scores[:, :, None].astype(np.float32)
    results = measure(replace(whole, images=table, values=values, dataset=replace(whole.dataset, table=table)))
    crude, within, *each = results.filter(pl.col("metric") == "disparity.ap_gap_matched").to_dicts()
    assert (crude["variant"], within["variant"]) == (None, "within source")
    assert [row["variant"] for row in each] == ["within source: x", "within source: y"]
    assert crude["value"] > 0.2
    assert abs(within["value"]) < 0.1
    assert crude["verdict"] == within["verdict"] == NONE_FOUND
    assert within["low"] < 0 < within["high"]


def test_opposite_gaps_of_two_sources_do_not_cancel(object_world: World, measure: Measure, one: One):
    """Ties are seen better with men in one source, and with women in the other."""
    whole = object_world(400, ("tie",), channel="cosine", seed=3)
    data, rng = read_concept_scores(whole, None), np.random.default_rng(33)
    first = np.arange(400) // 2 % 2 == 0
    seen = data.present & (first == (data.codes == 0))[:, None]
    table = whole.images.with_columns(source=pl.Series(np.where(first, "x", "y")))
    values = (rng.standard_normal((400, 1)) + 3 * seen)[:, :, None].astype(np.float32)
    results = measure(replace(whole, images=table, values=values, dataset=replace(whole.dataset, table=table)))
    _, within, x, y = results.filter(pl.col("metric") == "disparity.ap_gap_matched").to_dicts()
    assert within["verdict"] == NONE_FOUND
    assert x["verdict"] == y["verdict"] == DIFFERENCE
    assert y["high"] < 0 < x["low"]
    assert one(results, "gaps_shown", **PAIR)["value"] == 1
    (row,) = findings.tested(results, findings.pairs(results)[0]).to_dicts()
    assert row["found"]


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


def test_each_of_three_groups_is_compared_with_the_rest(three_groups: pl.DataFrame, one: One):
    assert one(three_groups, "ap_gap_matched", group="b", against="the rest", concept="tie")["high"] < 0
    others = three_groups.filter(pl.col("metric") == "disparity.ap_gap_matched", pl.col("concept") != "tie")
    assert (others["verdict"] == NONE_FOUND).all()


def test_a_detector_without_an_error_has_no_interval_of_width_0(object_world: World, measure: Measure, one: One):
    """A value that no draw changes says nothing about other images."""
    whole = object_world(200)
    present = read_concept_scores(whole, None).present
    results = measure(replace(whole, values=present[:, :, None].astype(np.float32)))
    for metric in ("ece", "brier", "ece_adaptive"):
        row = one(results, metric, group="man", concept="tie")
        assert row["value"] == 0
        assert row["low"] is None
    gap = one(results, "ap_gap_matched", concept="tie")
    assert (gap["value"], gap["low"], gap["verdict"]) == (0, None, NONE_FOUND)


def test_a_concept_without_scores_for_a_group_says_so(object_world: World, measure: Measure, one: One):
    whole = object_world(200)
    values = whole.values.copy()
    values[(whole.images["gender"] == "man").to_numpy(), 0] = np.nan
    row = one(measure(replace(whole, values=values)), "prevalence", group="man", concept="tie")
    assert row["value"] is None
    assert "no image of the group has a score" in row["note"]
