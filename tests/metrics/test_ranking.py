"""Rankings: equal to the obvious loop, and to the golden values of the study's own script."""

from __future__ import annotations

import json
from math import log, log2
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder.metrics.association import descending, ndkl, skew_at_k

DESIRED = {"gender": {"male": 1 / 2, "female": 1 / 2}, "race": {"white": 1 / 3, "black": 1 / 3, "asian": 1 / 3}}


def obvious_ndkl(ranking: list[int], desired: list[float]) -> float:
    total = weights = 0.0
    for place in range(1, len(ranking) + 1):
        prefix, divergence = ranking[:place], 0.0
        for group, share in enumerate(desired):
            p = prefix.count(group) / place
            divergence += p * log(p / share) if p else 0.0
        total += divergence / log2(place + 1)
        weights += 1 / log2(place + 1)
    return total / weights


def obvious_skew(ranking: list[int], desired: list[float], k: int) -> list[float]:
    shares = [ranking[:k].count(group) / k for group in range(len(desired))]
    return [log(share / want) if share else -np.inf for share, want in zip(shares, desired, strict=True)]


@pytest.mark.parametrize("desired", [[0.5, 0.5], [0.2, 0.3, 0.5]])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_one_pass_equals_the_obvious_loop(desired: list[float], k: int):
    rng = np.random.default_rng(k)
    scores, codes = rng.normal(size=(40, 5)), rng.integers(len(desired), size=40)
    rankings = codes[descending(scores)]
    skew, divergence = skew_at_k(rankings, np.array(desired), k), ndkl(rankings, np.array(desired))
    for column in range(5):
        ranking = [int(codes[image]) for image in sorted(range(40), key=lambda i, c=column: -scores[i, c])]
        np.testing.assert_allclose(skew[column], obvious_skew(ranking, desired, k))
        assert divergence[column] == pytest.approx(obvious_ndkl(ranking, desired), abs=1e-12)


def test_a_group_that_is_not_in_the_top_has_skew_minus_infinity():
    skew = skew_at_k(np.array([0, 0, 1]), np.array([0.5, 0.5]), 2)
    assert skew[1] == -np.inf
    assert np.isfinite(skew[0])


def test_equal_scores_keep_the_order_of_the_images_and_missing_ones_come_last():
    assert descending(np.array([1.0, np.nan, 2.0, 1.0])).tolist() == [[2, 0, 3, 1]]


@pytest.fixture(scope="module")
def golden_table(shared: Path) -> pl.DataFrame:
    return pl.read_parquet(shared / "golden" / "perception" / "dimension_cosines.parquet")


@pytest.fixture(scope="module")
def expected(shared: Path) -> dict:
    return json.loads((shared / "golden" / "perception" / "expected.json").read_text())


def tie_orders(scores: np.ndarray) -> list[np.ndarray]:
    """Every ranking that the scores allow; the golden columns have one tie at most."""
    forwards = descending(scores)[0]
    backwards = len(scores) - 1 - descending(scores[::-1])[0]
    return [forwards, backwards]


@pytest.mark.real
@pytest.mark.parametrize("attribute", DESIRED)
def test_ndkl_and_skew_equal_the_golden_values(attribute: str, golden_table: pl.DataFrame, expected: dict):
    """The script's sort is unstable: in the two columns with a tie its value is that of one order of the tied pair."""
    groups, desired = list(DESIRED[attribute]), np.array(list(DESIRED[attribute].values()))
    codes = np.array([groups.index(label) for label in golden_table[attribute]])
    for dimension in golden_table.columns[3:]:
        scores = golden_table[dimension].to_numpy().astype(np.float64)
        orders = tie_orders(scores)
        assert len(scores) - len(np.unique(scores)) <= 1
        values = [float(ndkl(codes[order], desired)) for order in orders]
        assert min(abs(value - expected[f"ndkl|{attribute}|{dimension}"]) for value in values) < 1e-9
        for order in orders:
            for group, skew in zip(groups, skew_at_k(codes[order], desired, 200), strict=True):
                key = f"skew_at_200|{attribute}={group}|{dimension}"
                assert skew == pytest.approx(expected[key], abs=1e-9)


def test_released_ties_are_one_of_the_orders_that_the_scores_allow():
    scores = np.array([0.1, 0.5, 0.5, 0.3])
    order = descending(scores, released=True)[0]
    assert sorted(order[:2].tolist()) == [1, 2]
    assert order[2:].tolist() == [3, 0]


@pytest.mark.real
def test_every_golden_ranking_value_is_among_those_compared(expected: dict):
    compared = sum(len(groups) + 1 for groups in DESIRED.values()) * 8
    assert compared == sum(key.startswith(("ndkl", "skew")) for key in expected)


def test_a_ranking_of_one_group_diverges_by_the_logarithm_of_its_share():
    assert ndkl(np.zeros(20, int), np.array([0.25, 0.75])) == pytest.approx(log(4))
