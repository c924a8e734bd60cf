"""Partial pooling: little spread draws together, much spread leaves alone, and intervals cover."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.metrics.clustered import partial_pooling


def test_groups_that_differ_by_no_more_than_their_errors_are_one():
    pooled = partial_pooling(np.array([0.49, 0.5, 0.51]), np.full(3, 0.05))
    assert pooled.spread == 0
    assert pooled.mean == pytest.approx([0.5] * 3)


def test_groups_far_apart_stay_where_they_are():
    means = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(partial_pooling(means, np.full(3, 0.001)).mean, means, atol=1e-4)


def test_the_uncertain_group_is_drawn_in_most():
    pooled = partial_pooling(np.array([0.2, 0.5, 0.6, 0.9]), np.array([0.2, 0.01, 0.01, 0.01]))
    moved = np.abs(pooled.mean - [0.2, 0.5, 0.6, 0.9])
    assert moved.argmax() == 0


def test_the_spread_solves_its_equation():
    rng = np.random.default_rng(2)
    means, errors = rng.normal(0, 0.3, 40), rng.uniform(0.05, 0.2, 40)
    pooled = partial_pooling(means, errors)
    weight = 1 / (errors**2 + pooled.spread**2)
    centre = (weight * means).sum() / weight.sum()
    assert (weight * (means - centre) ** 2).sum() == pytest.approx(39, abs=1e-6)


@pytest.mark.parametrize("count", [3, 12])
def test_means_and_errors_are_those_of_the_formula_written_out(count: int):
    """Morris (1983): what is left of its own error, its share of the overall mean's, and the unknown spread's."""
    rng = np.random.default_rng(count)
    means, errors = rng.normal(0, 0.3, count), rng.uniform(0.05, 0.2, count)
    pooled = partial_pooling(means, errors)
    assert pooled.spread > 0
    precision = sum(1 / (error**2 + pooled.spread**2) for error in errors)
    overall = sum(mean / (error**2 + pooled.spread**2) for mean, error in zip(means, errors, strict=True)) / precision
    assert pooled.overall == pytest.approx(overall)
    for place, (mean, error) in enumerate(zip(means, errors, strict=True)):
        drawn_in = error**2 / (error**2 + pooled.spread**2)
        assert pooled.mean[place] == pytest.approx(mean - drawn_in * (mean - overall))
        squared = (1 - drawn_in) * error**2 + drawn_in**2 / precision
        squared += 2 / max(count - 3, 1) * drawn_in**2 * (mean - overall) ** 2
        assert pooled.error[place] == pytest.approx(np.sqrt(squared))


def test_pooled_intervals_cover_the_true_means_and_err_less_than_the_raw_ones():
    rng, covered, better, cells = np.random.default_rng(5), 0, 0, 0
    for _ in range(200):
        truth, errors = rng.normal(0.5, 0.05, 30), rng.uniform(0.02, 0.1, 30)
        raw = rng.normal(truth, errors)
        pooled = partial_pooling(raw, errors)
        covered += (np.abs(pooled.mean - truth) <= 1.96 * pooled.error).sum()
        better += ((pooled.mean - truth) ** 2).sum() < ((raw - truth) ** 2).sum()
        cells += 30
    assert 0.92 <= covered / cells <= 0.97
    assert better > 190


def test_two_groups_whose_errors_vanish_are_pooled_without_a_fault():
    for scale in (1e-9, 1e-6, 1.0, 1e6):
        pooled = partial_pooling(scale * np.array([0.1, 0.7]), scale * np.array([1e-30, 1e-30]))
        np.testing.assert_allclose(pooled.overall, 0.4 * scale)
