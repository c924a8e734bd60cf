"""Adjusted gaps: a difference of means without covariates, numpy's least squares with them."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.metrics.adjusted_gap import adjusted_gap, adjusted_gap_draws
from beholder.metrics.bootstrap import Resampler


@pytest.fixture
def world() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Members have less of the covariate, and the covariate makes the value: at equal covariate the gap is 0.1."""
    rng = np.random.default_rng(6)
    member, blocks = rng.random(200) < 0.4, rng.integers(0, 4, 200)
    covariate = rng.normal(2 - member, 1.0)
    values = 0.3 * covariate + 0.1 * member + 0.5 * blocks + rng.normal(0, 0.05, 200)
    return values, member, covariate[:, None], blocks


def test_without_covariates_and_blocks_it_is_the_difference_of_means(world: tuple[np.ndarray, ...]):
    values, member, covariate, _ = world
    expected = values[member].mean() - values[~member].mean()
    assert adjusted_gap(values, member, covariate[:, :0], np.zeros(200)) == pytest.approx(expected)


def test_at_equal_covariates_it_is_the_planted_gap(world: tuple[np.ndarray, ...]):
    values, member, covariate, blocks = world
    assert adjusted_gap(values, member, covariate[:, :0], blocks) < -0.1
    assert adjusted_gap(values, member, covariate, blocks) == pytest.approx(0.1, abs=0.02)


def test_every_draw_is_numpys_least_squares(world: tuple[np.ndarray, ...]):
    values, member, covariate, blocks = world
    resampler = Resampler(np.arange(200), np.random.default_rng(1), 40)
    drawn = adjusted_gap_draws(values, member, covariate, blocks, resampler)
    design = np.column_stack([member, covariate, blocks[:, None] == np.arange(4)]).astype(float)
    (weights,) = resampler.weights()
    for value, often in zip(drawn, weights.astype(int), strict=True):
        again = np.repeat(np.arange(200), often)
        assert value == pytest.approx(np.linalg.lstsq(design[again], values[again], rcond=None)[0][0], abs=1e-9)


def test_a_covariate_that_never_varies_changes_nothing(world: tuple[np.ndarray, ...]):
    values, member, covariate, blocks = world
    plain = adjusted_gap(values, member, covariate[:, :0], blocks)
    assert adjusted_gap(values, member, np.full((200, 1), 7.0), blocks) == pytest.approx(plain)
