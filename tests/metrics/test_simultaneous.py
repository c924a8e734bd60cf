"""Simultaneous bands cover every number at once, and so the widest of them."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from beholder.metrics.simultaneous import simultaneous_band


def test_the_multiplier_of_independent_numbers_is_sidaks() -> None:
    draws = np.random.default_rng(1).normal(size=(20_000, 20))
    assert abs(simultaneous_band(np.zeros(20), draws).multiplier - norm.isf((1 - 0.95 ** (1 / 20)) / 2)) < 0.06


def test_numbers_that_move_together_pay_nothing() -> None:
    draws = np.repeat(np.random.default_rng(2).normal(size=(20_000, 1)), 20, axis=1)
    assert abs(simultaneous_band(np.zeros(20), draws).multiplier - norm.isf(0.025)) < 0.06


def test_the_widest_of_many_equal_gaps_is_covered() -> None:
    rng, covered, naive = np.random.default_rng(3), 0, 0
    for _ in range(300):
        data = rng.normal(0.5, 1, size=(60, 50))
        means = data.mean(axis=0)
        draws = np.array([data[rng.integers(0, 60, 60)].mean(axis=0) for _ in range(200)])
        band, top = simultaneous_band(means, draws), means.argmax()
        covered += band.low[top] <= 0.5 <= band.high[top]
        naive += abs(means[top] - 0.5) <= 1.96 * draws[:, top].std()
    assert covered / 300 > 0.92 > 0.5 > naive / 300


def test_a_number_that_never_moves_has_no_band() -> None:
    draws = np.column_stack([np.ones(50), np.random.default_rng(4).normal(size=50)])
    band = simultaneous_band(np.array([1.0, 0.0]), draws)
    assert np.isnan(band.low[0])
    assert band.low[1] < 0 < band.high[1]
