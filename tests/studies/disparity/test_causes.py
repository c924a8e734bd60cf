"""Why recognition might differ: sizes, numbers and names of things beside loops over the boxes, with scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from beholder.audit import measure
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.study import disparity_study
from beholder.studies.study import MeasureOptions

PAIR = "man less woman"


@pytest.fixture(scope="module")
def matrix(object_world: Callable[..., ScoreMatrix]) -> ScoreMatrix:
    return object_world(300, concepts=("tie", "dog"), rare={("woman", "tie"): 0.1})


@pytest.fixture(scope="module")
def results(matrix: ScoreMatrix) -> pl.DataFrame:
    benchmark = disparity_study(None)
    return measure(benchmark, [matrix], MeasureOptions(draws=50), model="m", dataset=matrix.dataset.name)


def one(results: pl.DataFrame, metric: str, **where: str) -> dict[str, Any]:
    (row,) = results.filter(pl.col("metric") == f"disparity.{metric}", **where).to_dicts()
    return row


def boxes(matrix: ScoreMatrix, concept: str) -> dict[str, list[dict[str, Any]]]:
    """The boxes of a concept by the gender of who is shown with it."""
    gender = dict(matrix.images.select("image_id", "gender").iter_rows())
    found: dict[str, list[dict[str, Any]]] = {"man": [], "woman": []}
    for box in matrix.dataset.objects.filter(concept=concept).to_dicts():
        found[gender[box["image_id"]]].append(box)
    return found


@pytest.mark.parametrize("concept", ["tie", "dog"])
@pytest.mark.parametrize("metric", ["area", "instances"])
def test_sizes_and_numbers_differ_as_welchs_test_says(
    matrix: ScoreMatrix, results: pl.DataFrame, metric: str, concept: str
):
    parts = {group: np.array([box[metric] for box in found]) for group, found in boxes(matrix, concept).items()}
    for group, values in parts.items():
        row = one(results, metric, group=group, concept=concept)
        assert (row["value"], row["n"]) == (pytest.approx(values.mean()), len(values))
    gap = one(results, f"{metric}_gap", group=PAIR, concept=concept)
    assert gap["value"] == pytest.approx(parts["man"].mean() - parts["woman"].mean())
    assert gap["n"] == len(parts["man"]) + len(parts["woman"])
    expected = stats.ttest_ind(parts["man"], parts["woman"], equal_var=False).confidence_interval()
    assert (gap["low"], gap["high"]) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("metric", ["area", "instances"])
def test_its_p_values_are_corrected_over_the_concepts(matrix: ScoreMatrix, results: pl.DataFrame, metric: str):
    raw = []
    for concept in ("tie", "dog"):
        found = boxes(matrix, concept)
        parts = [[box[metric] for box in found[group]] for group in ("man", "woman")]
        raw.append(stats.ttest_ind(*parts, equal_var=False).pvalue)
    said = [one(results, f"{metric}_gap", group=PAIR, concept=concept)["p_value"] for concept in ("tie", "dog")]
    assert said == pytest.approx(stats.false_discovery_control(raw).tolist())


@pytest.mark.parametrize("concept", ["tie", "dog"])
def test_names_differ_by_half_the_sum_of_their_shares_distances(
    matrix: ScoreMatrix, results: pl.DataFrame, concept: str
):
    """A box with several names counts for each in part."""
    shares = []
    for found in boxes(matrix, concept).values():
        weights: dict[str, float] = {}
        for box in found:
            for name in box["names"]:
                weights[name] = weights.get(name, 0.0) + 1 / len(box["names"])
        shares.append({name: weight / sum(weights.values()) for name, weight in weights.items()})
    apart = sum(abs(shares[0].get(name, 0.0) - shares[1].get(name, 0.0)) for name in {*shares[0], *shares[1]}) / 2
    row = one(results, "names", group=PAIR, concept=concept)
    assert row["value"] == pytest.approx(apart)
    assert row["n"] == sum(map(len, boxes(matrix, concept).values()))
    assert f"man: {concept} 100 %" in row["note"]
