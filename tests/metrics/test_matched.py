"""Matched sets: differences and slopes equal the obvious loop, and their intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.bootstrap import Resampler
from beholder.metrics.matched import BySeed, by_seed, differences, less, seed_mean, slopes


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


def test_sets_are_averaged_within_their_seed_and_subtracted_by_seed():
    first = by_seed(np.array([[1.0], [3.0], [5.0]]), np.array([7, 7, 9]))
    second = by_seed(np.array([[1.0], [1.0]]), np.array([9, 11]))
    assert first.values[:, 0].tolist() == [2.0, 5.0]
    assert less(first, second).values[:, 0].tolist() == [4.0]
    assert less(first, second).seeds.tolist() == [9]
    assert (first.sets, less(first, second).sets, less(second, first).sets) == (3, 2, 2)


def test_fewer_than_five_seeds_have_no_interval():
    found = seed_mean(BySeed(np.arange(4), rng().normal(size=(4, 1)), 4), rng(), 200)
    assert np.isnan(found.low[0])
    assert np.isfinite(found.value[0])


def test_five_seeds_have_the_interval_of_the_loop_over_draws():
    values = rng(4).gamma(1.0, 1.0, (5, 2))
    found = seed_mean(BySeed(np.arange(5), values, 9), rng(6), 300)
    for column, mine in enumerate(values.T):
        t = []
        for draw in np.concatenate(list(Resampler(np.arange(5), rng(6), 300).weights())).astype(int):
            drawn = np.repeat(mine, draw)
            if len(set(drawn)) > 1:
                t.append((drawn.mean() - mine.mean()) / stats.sem(drawn))
        low, high = np.quantile(t, [0.025, 0.975])
        expected = (mine.mean() - high * stats.sem(mine), mine.mean() - low * stats.sem(mine))
        assert (found.low[column], found.high[column]) == pytest.approx(expected)
        assert found.p_value[column] == pytest.approx(stats.ttest_1samp(mine, 0).pvalue)
    assert found.n.tolist() == [9, 9]


def test_seeds_that_agree_in_one_column_say_nothing_of_another():
    values = np.stack([np.full(6, 0.5), rng().normal(size=6)], axis=1)
    found = seed_mean(BySeed(np.arange(6), values, 6), rng(), 200)
    assert (found.low[0], found.high[0]) == (0.5, 0.5)
    assert found.low[1] < values[:, 1].mean() < found.high[1]


def test_no_sets_have_no_differences():
    nobody = np.full(3, -1)
    for numbers, found in (differences(np.ones(3), nobody, nobody), slopes(np.ones(3), nobody, np.arange(3.0))):
        assert (len(numbers), len(found)) == (0, 0)


def test_seeds_that_agree_have_an_interval_without_width():
    found = seed_mean(BySeed(np.arange(6), np.full((6, 2), 0.5), 6), rng(), 200)
    np.testing.assert_allclose((found.low, found.high), 0.5)


@pytest.mark.parametrize("seeds", [8, 30])
def test_the_studentised_interval_covers_with_few_seeds(seeds: int):
    generator = rng(5)
    values = generator.normal(loc=0.3, size=(seeds, 400))
    found = seed_mean(BySeed(np.arange(seeds), values, seeds), generator, 999)
    assert 0.93 <= ((found.low <= 0.3) & (found.high >= 0.3)).mean() <= 0.97
