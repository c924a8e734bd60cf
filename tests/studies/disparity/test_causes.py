"""Possible causes of a gap: sizes, numbers and names of objects, compared with loops over the boxes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.gaps import equal_areas, outranked
from beholder.studies.disparity.scores import read_concept_scores

PAIR = {"group": "man", "against": "woman"}
One = Callable[..., dict[str, Any]]
Measure = Callable[..., pl.DataFrame]
World = Callable[..., ScoreMatrix]


def boxes(matrix: ScoreMatrix, concept: str) -> dict[str, list[dict[str, Any]]]:
    """The boxes of a concept by the gender of the person in the image."""
    gender = dict(matrix.images.select("image_id", "gender").iter_rows())
    by_group: dict[str, list[dict[str, Any]]] = {"man": [], "woman": []}
    for box in matrix.dataset.objects.filter(concept=concept).to_dicts():
        by_group[gender[box["image_id"]]].append(box)
    return by_group


@pytest.mark.parametrize("concept", ["tie", "dog"])
@pytest.mark.parametrize("metric", ["area", "instances"])
def test_sizes_and_numbers_are_described_not_tested(
    matrix: ScoreMatrix, results: pl.DataFrame, one: One, metric: str, concept: str
):
    parts = {group: np.array([box[metric] for box in part]) for group, part in boxes(matrix, concept).items()}
    for group, values in parts.items():
        row = one(results, metric, group=group, concept=concept)
        assert (row["value"], row["n"]) == (pytest.approx(values.mean()), len(values))
    gap = one(results, f"{metric}_gap", **PAIR, concept=concept)
    assert gap["value"] == pytest.approx(parts["man"].mean() - parts["woman"].mean())
    assert gap["n"] == len(parts["man"]) + len(parts["woman"])
    assert (gap["low"], gap["p_value"], gap["verdict"]) == (None, None, None)


@pytest.mark.parametrize("concept", ["tie", "dog"])
def test_names_differ_by_half_the_sum_of_the_distances_of_their_shares(
    matrix: ScoreMatrix, results: pl.DataFrame, one: One, concept: str
):
    """A box with several names counts for each in part."""
    shares = []
    for part in boxes(matrix, concept).values():
        weights: dict[str, float] = {}
        for box in part:
            for name in box["names"]:
                weights[name] = weights.get(name, 0.0) + 1 / len(box["names"])
        shares.append({name: weight / sum(weights.values()) for name, weight in weights.items()})
    apart = sum(abs(shares[0].get(name, 0.0) - shares[1].get(name, 0.0)) for name in {*shares[0], *shares[1]}) / 2
    row = one(results, "names", **PAIR, concept=concept)
    assert row["value"] == pytest.approx(apart)
    assert 0.3 < row["value"] < 0.7
    assert row["n"] == sum(map(len, boxes(matrix, concept).values()))
    assert row["note"].startswith(f"man: {concept} 100 %; woman: ")
    assert f"other {concept}" in row["note"]


@pytest.mark.slow
def test_a_gap_of_size_alone_vanishes_at_equal_sizes(object_world: World, measure: Measure, one: One):
    """Large objects score higher; men's ties are large more often. At equal sizes there is no gap."""
    matrix = object_world(3000, ("tie", "dog"), seed=6)
    rng = np.random.default_rng(7)
    gender = dict(matrix.images.select("image_id", "gender").iter_rows())
    rows = matrix.dataset.objects.to_dicts()
    values = matrix.values.copy()
    for row in rows:
        if row["concept"] == "tie":
            large = rng.random() < (0.8 if gender[row["image_id"]] == "man" else 0.2)
            row["area"] = float(rng.uniform(0.3, 0.5) if large else rng.uniform(0.0, 0.1))
            values[int(row["image_id"]), 0, 0] = rng.uniform(0.7, 1.0) if large else rng.uniform(0.1, 0.8)
    objects = pl.DataFrame(rows, schema=matrix.dataset.objects.schema)
    matrix = replace(matrix, values=values, dataset=replace(matrix.dataset, objects=objects))
    results = measure(matrix)
    before, after = (one(results, m, **PAIR, concept="tie") for m in ("ap_gap_matched", "ap_gap_same_area"))
    assert before["low"] > 0.1
    assert abs(after["value"]) < 0.05


def test_weights_give_all_groups_the_same_sizes(matrix: ScoreMatrix):
    data = read_concept_scores(matrix, None)
    areas = np.full(data.scores.shape, np.nan)
    table = data.objects()
    areas[table["row"].to_numpy(), table["column"].to_numpy()] = table["area"].to_numpy()
    importance, kept = equal_areas(data, areas)
    edges = np.quantile(areas[data.present[:, 0], 0], [0.2, 0.4, 0.6, 0.8])
    shares = []
    for index, members in enumerate(data.sets):
        shows = members & data.present[:, 0]
        bins = np.searchsorted(edges, areas[shows, 0])
        shares.append(np.bincount(bins, weights=importance[index, shows, 0]) / importance[index, shows, 0].sum())
    np.testing.assert_allclose(shares[0], shares[1], atol=1e-5)
    assert kept[:, 0].tolist() == data.showing[:, 0].tolist()


def test_outranked_is_what_the_curve_leaves():
    rng = np.random.default_rng(8)
    there, empty = rng.integers(0, 9, 50) / 9, rng.integers(0, 7, 80) / 9
    truth = np.repeat([True, False], [50, 80])
    assert outranked(there, empty) == pytest.approx(1 - roc_auc_score(truth, np.concatenate([there, empty])))


def test_image_ids_are_those_that_lower_precision_most(matrix: ScoreMatrix, results: pl.DataFrame, one: One):
    row = one(results, "outranked", group="woman", concept="tie", subset="overlooked")
    data = read_concept_scores(matrix, None)
    women = np.flatnonzero((data.codes == 1) & data.present[:, 0])
    lowest = women[np.argsort(data.scores[women, 0], kind="stable")][:10]
    assert row["note"] == ", ".join(map(str, lowest))
