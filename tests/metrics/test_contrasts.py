"""Contrasts, slopes and interactions against obvious computations, and silent in noise."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.contrasts import group_contrasts, interactions, pairs_and_rests, slopes


def test_contrasts_are_differences_of_means_and_of_the_rest():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, 90)
    values = rng.normal(size=(90, 2))
    sizes = np.bincount(codes)
    result = group_contrasts(values, codes, pairs_and_rests(sizes), rng, 99, people=np.arange(90))
    for k in range(2):
        means = [values[codes == g, k].mean() for g in range(3)]
        rest = [values[codes != g, k].mean() for g in range(3)]
        expected = [means[i] - means[j] for i, j in combinations(range(3), 2)]
        expected += [mean - other for mean, other in zip(means, rest, strict=True)]
        assert result.value[:, k] == pytest.approx(expected)
    assert (result.low < result.value).all()
    assert (result.value < result.high).all()


def test_one_pair_and_one_column_have_welchs_interval_and_p():
    rng = np.random.default_rng(2)
    codes = np.repeat([0, 1], [30, 60])
    values = rng.normal(size=(90, 1)) * np.where(codes == 0, 2.0, 1.0)[:, None] + 0.6 * (codes == 0)[:, None]
    result = group_contrasts(values, codes, pairs_and_rests([30, 60]), rng, 3999, people=np.arange(90))
    welch = stats.ttest_ind(values[codes == 0, 0], values[codes == 1, 0], equal_var=False)
    low, high = welch.confidence_interval()
    assert result.p_value[0, 0] == pytest.approx(welch.pvalue, abs=0.012)
    assert [result.low[0, 0], result.high[0, 0]] == pytest.approx([low, high], abs=0.12)


def test_a_person_with_many_images_counts_once():
    rng = np.random.default_rng(3)
    people = np.repeat(np.arange(20), 10)
    codes = people % 2
    values = np.repeat(rng.normal(size=(20, 1)), 10, axis=0)
    together, apart = (
        group_contrasts(values, codes, pairs_and_rests([100, 100]), rng, 199, people=who)
        for who in (people, np.arange(200))
    )
    assert together.high[0, 0] - together.low[0, 0] > 2.5 * (apart.high[0, 0] - apart.low[0, 0])


def test_the_slope_is_that_of_least_squares():
    rng = np.random.default_rng(4)
    numbers = rng.integers(1, 90, 200).astype(float)
    values = np.stack([0.01 * numbers + rng.normal(size=200), rng.normal(size=200)], axis=1)
    result = slopes(values, numbers, rng, 1999, people=np.arange(200))
    for k in range(2):
        line = stats.linregress(numbers, values[:, k])
        assert result.value[0, k] == pytest.approx(line.slope)
    alone = slopes(values[:, :1], numbers, rng, 3999, people=np.arange(200))
    line = stats.linregress(numbers, values[:, 0])
    margin = 1.97 * line.stderr
    assert [alone.low[0, 0], alone.high[0, 0]] == pytest.approx([line.slope - margin, line.slope + margin], abs=0.003)


def test_a_planted_intersection_is_found_and_additive_effects_are_not():
    rng = np.random.default_rng(5)
    first, second = rng.integers(0, 2, 400), rng.integers(0, 3, 400)
    cells = first * 3 + second
    design = np.column_stack([np.ones(400), first, second == 1, second == 2]).astype(float)
    values = np.stack([first + second + rng.normal(size=400), 1.5 * (cells == 5) + rng.normal(size=400)], axis=1)
    result = interactions(values, cells, design, rng, 399, people=np.arange(400))
    fit = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    assert result.raw[:, 1] == pytest.approx([fit[cells == c, 1].mean() for c in range(6)])
    assert result.p_value[:, 0].min() > 0.05
    assert result.p_value[5, 1] <= 0.01
    assert result.low[5, 1] > 0
    assert (np.abs(result.value) <= np.abs(result.raw) + 1e-9).all()
