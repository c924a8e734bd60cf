"""Rank correlation: scipy's where scipy has it, a loop over draws and a regression on ranks where it has not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from beholder.metrics.bootstrap import Resampler, percentile_interval
from beholder.metrics.rank_correlation import rank_correlation, rank_correlation_draws


@pytest.fixture
def pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    blocks = rng.integers(0, 3, 60)
    first = rng.poisson(3, 60).astype(float) + 2 * blocks
    return first, first + rng.normal(0, 4, 60).round() + 5 * blocks, blocks


def test_it_is_spearmans_ties_included(pairs: tuple[np.ndarray, ...]):
    first, second, _ = pairs
    assert rank_correlation(first, second) == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)


def test_with_blocks_it_is_the_correlation_of_what_a_regression_on_blocks_leaves_of_the_ranks(
    pairs: tuple[np.ndarray, ...],
):
    first, second, blocks = pairs
    design = (blocks[:, None] == np.arange(3)).astype(float)
    left = []
    for ranks in map(rankdata, (first, second)):
        left.append(ranks - design @ np.linalg.lstsq(design, ranks, rcond=None)[0])
    assert rank_correlation(first, second, blocks) == pytest.approx(np.corrcoef(*left)[0, 1], abs=1e-12)
    assert rank_correlation(first, second, blocks) < rank_correlation(first, second)


def test_every_draw_is_ranked_anew(pairs: tuple[np.ndarray, ...]):
    first, second, _ = pairs
    resampler = Resampler(np.arange(60), np.random.default_rng(1), 50)
    drawn = rank_correlation_draws(first, second, resampler)
    (weights,) = resampler.weights()
    for value, often in zip(drawn, weights.astype(int), strict=True):
        again = np.repeat(np.arange(60), often)
        assert value == pytest.approx(spearmanr(first[again], second[again]).statistic, abs=1e-12)


def test_what_is_all_alike_has_no_correlation():
    alike, other = np.full(9, 3.0), np.arange(9.0)
    assert np.isnan(rank_correlation(alike, other))
    blocks = np.repeat([0, 1, 2], 3)
    assert np.isnan(rank_correlation(blocks.astype(float), other, blocks))


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 120])
def test_the_interval_holds_as_often_as_it_says(n: int):
    """Normal pairs with correlation 0.5, whose Spearman correlation is 6/π · asin(0.25)."""
    rng, held = np.random.default_rng(8), 0
    for _ in range(300):
        first = rng.normal(size=n)
        second = 0.5 * first + np.sqrt(0.75) * rng.normal(size=n)
        low, high = percentile_interval(rank_correlation_draws(first, second, Resampler(np.arange(n), rng, 300)))
        held += low <= 6 / np.pi * np.arcsin(0.25) <= high
    assert held >= 0.90 * 300
