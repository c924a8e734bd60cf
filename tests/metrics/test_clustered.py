"""Clustered means: the ordinary interval for independent images, an honest one for people with many pictures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.clustered import CellMeans, polynomial_weights


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_independent_images_have_the_ordinary_interval_of_a_mean():
    values, cells = rng().normal(size=(60, 2)), np.arange(60) % 3
    found = CellMeans(values, cells, np.arange(60), 3).means()
    for cell in range(3):
        mine = values[cells == cell]
        low, high = stats.t.interval(0.95, len(mine) - 1, mine.mean(axis=0), stats.sem(mine))
        np.testing.assert_allclose(found.value[cell], mine.mean(axis=0))
        np.testing.assert_allclose(found.low[cell], low)
        np.testing.assert_allclose(found.high[cell], high)


def test_equal_pictures_of_one_person_count_as_one():
    people = rng(2).normal(size=12)
    many = CellMeans(np.repeat(people, 5), np.zeros(60, int), np.repeat(np.arange(12), 5), 1).means()
    once = CellMeans(people, np.zeros(12, int), np.arange(12), 1).means()
    np.testing.assert_allclose((many.low, many.high), (once.low, once.high))


def test_a_difference_of_cells_of_the_same_people_is_a_paired_interval():
    first, second = rng(3).normal(size=(2, 30)) + rng(4).normal(size=30) * 3
    means = CellMeans(np.concatenate([first, second]), np.repeat([0, 1], 30), np.tile(np.arange(30), 2), 2)
    found = means.combined(np.array([[1.0, -1.0]]))
    low, high = stats.ttest_rel(first, second).confidence_interval()
    np.testing.assert_allclose((found.low[0, 0], found.high[0, 0]), (low, high))


def test_a_cell_of_nobody_and_one_of_four_people_have_no_interval():
    found = CellMeans(rng().normal(size=4), np.zeros(4, int), np.arange(4), 2).means()
    assert np.isnan(found.low).all()
    assert found.n.tolist() == [4, 0]
    assert np.isnan(found.value[1, 0])


def test_five_people_have_an_interval_and_cells_of_weight_0_are_left_aside_even_if_empty():
    values = rng().normal(size=5)
    means = CellMeans(values, np.zeros(5, int), np.arange(5), 2)
    expected = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    for found in (means.means(), means.combined(np.array([[1.0, 0.0]]))):
        assert (found.low[0, 0], found.high[0, 0]) == pytest.approx(expected)
        assert found.n[0] == 5
    assert np.isnan(means.combined(np.array([[1.0, -1.0]])).value).all()


def test_a_difference_of_independent_cells_is_welchs():
    first, second = rng(6).normal(size=7), 3 * rng(7).normal(size=40)
    means = CellMeans(np.concatenate([first, second]), np.repeat([0, 1], [7, 40]), np.arange(47), 2)
    found = means.combined(np.array([[1.0, -1.0]]))
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert (found.low[0, 0], found.high[0, 0]) == pytest.approx(tuple(expected.confidence_interval()))


def test_one_person_against_many_has_a_difference_but_no_interval():
    """Nothing tells how far that one person's group spreads; it was taken to be known for certain."""
    means = CellMeans(rng(8).normal(size=40), np.repeat([0, 1], [1, 39]), np.arange(40), 2)
    found = means.combined(np.array([[1.0, -1.0]]))
    assert np.isfinite(found.value).all()
    assert np.isnan([found.low, found.high]).all()


def test_images_of_no_cell_count_for_nothing():
    values = np.array([1.0, 2.0, 99.0])
    assert CellMeans(values, np.array([0, 0, -1]), np.arange(3), 1).value[0, 0] == 1.5


def test_fitted_values_are_those_of_polyfit():
    places, values = np.array([20.0, 25, 35, 45, 70]), rng(5).normal(size=5)
    expected = np.polyval(np.polyfit(places, values, 2), places)
    np.testing.assert_allclose(polynomial_weights(places) @ values, expected)


def test_two_places_are_joined_by_a_line():
    np.testing.assert_allclose(polynomial_weights(np.array([1.0, 3.0])), np.eye(2), atol=1e-12)


@pytest.mark.parametrize("pictures", [1, 6])
def test_intervals_cover_the_true_mean(pictures: int):
    hits, generator = 0, rng(6)
    for _ in range(400):
        people = generator.normal(size=15)
        values = np.repeat(people, pictures) + generator.normal(size=15 * pictures)
        found = CellMeans(values, np.zeros(len(values), int), np.repeat(np.arange(15), pictures), 1).means()
        hits += bool(found.low[0, 0] <= 0 <= found.high[0, 0])
    assert 0.93 <= hits / 400 <= 0.97
