"""Matched sets: differences and slopes equal the obvious loop, and their intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.clustered import BySeed, by_seed, combined, curvatures, differences, slopes


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_differences_equal_the_loop_over_sets():
    values, sets = rng().normal(size=(40, 3)), rng(2).integers(8, size=40)
    side = rng(3).choice([-1, 0, 1], size=40)
    both, found = differences(values, sets, side)
    for place, number in enumerate(both):
        upper, lower = (values[(sets == number) & (side == sign)] for sign in (1, -1))
        np.testing.assert_allclose(found[place], upper.mean(axis=0) - lower.mean(axis=0))
    lacking = [
        number
        for number in range(8)
        if not (((sets == number) & (side == 1)).any() and ((sets == number) & (side == -1)).any())
    ]
    assert sorted([*both, *lacking]) == list(range(8))


def test_slopes_equal_scipys_linregress_and_single_levels_have_none():
    levels = np.array([0.0, 1, 2, 0, 3, 5, 5])
    sets, values = np.array([0, 0, 0, 1, 1, 2, -1]), rng().normal(size=7)
    known, found = slopes(values, sets, levels)
    assert known.tolist() == [0, 1]
    for number in (0, 1):
        mine = sets == number
        assert found[number, 0] == pytest.approx(stats.linregress(levels[mine], values[mine]).slope)


def test_sets_are_averaged_within_their_seed():
    found = by_seed(np.array([[1.0], [3.0], [5.0]]), np.array([7, 7, 9]))
    assert found.values[:, 0].tolist() == [2.0, 5.0]
    assert (found.seeds.tolist(), found.sets) == ([7, 9], 3)


def test_curvatures_equal_numpys_polyfit_and_two_levels_have_none():
    levels = np.array([0.0, 1, 2, 5, 0, 3, 5, 1, 4])
    sets, values = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2]), rng().normal(size=9)
    known, found = curvatures(values, sets, levels)
    assert known.tolist() == [0, 1]
    for number in (0, 1):
        mine = sets == number
        assert found[number, 0] == pytest.approx(np.polyfit(levels[mine], values[mine], 2)[0])


def test_sums_are_of_the_seeds_that_all_have():
    parts = [
        BySeed(np.array(seeds), np.array(seeds)[:, None] * 1.0, 9 - len(seeds)) for seeds in ([1, 2, 4], [2, 4], [4])
    ]
    found = combined(parts, np.array([1.0, -2.0, 0.0]))
    assert found.seeds.tolist() == [2, 4]
    assert found.values[:, 0].tolist() == [-2.0, -4.0]
    assert found.sets == 6


def test_no_sets_have_no_differences():
    nobody = np.full(3, -1)
    for numbers, found in (
        differences(np.ones(3), nobody, nobody),
        slopes(np.ones(3), nobody, np.arange(3.0)),
        curvatures(np.ones(3), nobody, np.arange(3.0)),
    ):
        assert (len(numbers), len(found)) == (0, 0)
