"""Intervals: equal to the loop, repeatable, by person, honest at the ends, and covering what they should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics import intervals
from beholder.metrics.intervals import Resampler, centred_interval, exact_proportion_interval, percentile_interval


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_weighted_means_equal_the_obvious_loop():
    values, clusters = rng(3).random((7, 2)), np.array(list("aabbcde"))
    resampler = Resampler(clusters, rng(), draws=50)
    weights = np.concatenate(list(resampler.weights()))
    for draw, means in zip(weights, resampler.means(values), strict=True):
        drawn = np.repeat(np.arange(7), draw.astype(int))
        np.testing.assert_allclose(means, values[drawn].mean(axis=0))


def test_pictures_of_one_person_are_drawn_together():
    for draw in np.concatenate(list(Resampler(np.array(list("aabbc")), rng(), draws=30).weights())):
        assert draw[0] == draw[1]
        assert draw[2] == draw[3]
        assert draw[0] + draw[2] + draw[4] == 3


def test_missing_values_count_for_nothing():
    values = np.array([1.0, np.nan, 3.0, np.nan])
    drawn = Resampler(np.arange(4), rng(), draws=400).means(values)[:, 0]
    assert set(np.round(drawn[~np.isnan(drawn)], 6)) <= {1.0, 1.5, 1.666667, 2.0, 2.333333, 2.5, 3.0}
    assert np.isnan(drawn).any()  # now and then none of the known ones is drawn


def test_equal_generators_give_equal_draws():
    values = rng(5).random(40)
    one, two = (Resampler(np.arange(40), rng(9)).means(values) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_draws_in_parts_equal_draws_in_one_go(monkeypatch: pytest.MonkeyPatch):
    values, whole = rng(5).random(40), Resampler(np.arange(40), rng(9), draws=100)
    expected = whole.means(values)
    monkeypatch.setattr(intervals, "CELLS", 40 * 7)
    np.testing.assert_allclose(Resampler(np.arange(40), rng(9), draws=100).means(values), expected)


@pytest.mark.parametrize(("cells", "kept"), [(1 << 22, 1), (40 * 7, 15), (40 * 7, 0)])
def test_a_second_number_has_the_same_draws_without_drawing_them_again(
    cells: int, kept: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(intervals, "CELLS", cells)
    monkeypatch.setattr(intervals, "KEPT", 40 * 100 if kept else 0)
    resampler = Resampler(np.arange(40), rng(9), draws=100)
    first, second = (np.concatenate(list(resampler.weights())) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert len(resampler._kept) == kept


@pytest.mark.slow
def test_the_interval_agrees_with_scipys_bootstrap():
    values = rng(8).beta(2, 5, 200)
    ours = percentile_interval(Resampler(np.arange(200), rng(), draws=20_000).means(values))
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=rng()).confidence_interval
    assert ours == pytest.approx(tuple(theirs), abs=0.002)


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (3, 9), (7, 7)])
def test_exact_bounds_agree_with_scipy(hits: int, n: int):
    expected = stats.binomtest(hits, n).proportion_ci(0.95, method="exact")
    assert exact_proportion_interval(hits, n) == pytest.approx((expected.low, expected.high))


def test_mostly_undefined_draws_give_no_interval():
    assert np.isnan(percentile_interval(np.array([np.nan, np.inf, 1.0]))).all()


def test_strata_are_drawn_from_apart():
    strata = np.array([0, 0, 0, 1, 1, 2])
    people = np.array(["a", "a", "b", "a", "c", "d"])  # `a` of another stratum is someone else
    resampler = Resampler(people, np.random.default_rng(0), 50, strata=strata)
    weights = np.concatenate(list(resampler.weights()))
    assert resampler.n_clusters == 5
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 0] + weights[:, 2] == 2).all()
    assert (weights[:, 3] + weights[:, 4] == 2).all()
    assert (weights[:, 5] == 1).all()


def test_a_centred_interval_is_as_wide_and_lies_around_the_value():
    draws = np.random.default_rng(1).normal(3.0, 1.0, 4000)
    low, high = centred_interval(draws, 0.5)
    plain = percentile_interval(draws)
    assert high - low == pytest.approx(plain.high - plain.low)
    assert (low + high) / 2 == pytest.approx(0.5, abs=0.1)
    assert np.isnan(centred_interval(np.full(10, np.nan), 0.5)).all()
