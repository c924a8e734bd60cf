"""Association measures against scipy and against the obvious loop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax as scipy_softmax
from scipy.stats import rankdata

from beholder.metrics.association import chance, correct_rank, correct_share, first, half_precision_mean, softmax

LOGITS = arrays(np.float64, (5, 4), elements=st.floats(-60, 60))
MASKS = arrays(np.bool_, (5, 4))


@given(LOGITS)
def test_softmax_agrees_with_scipy_along_both_axes(logits):
    for axis in (0, 1):
        np.testing.assert_allclose(softmax(logits, axis), scipy_softmax(logits, axis), atol=1e-15)


def test_softmax_does_not_overflow():
    np.testing.assert_allclose(softmax(np.array([[1e4, 0.0]])), [[1.0, 0.0]])


@given(LOGITS, MASKS)
def test_correct_share_is_the_sum_over_correct_options(logits, correct):
    shares = softmax(logits)
    for row, value in enumerate(correct_share(shares, correct)):
        wanted = [shares[row, j] for j in range(4) if correct[row, j]]
        assert value == pytest.approx(sum(wanted)) if wanted else np.isnan(value)


@pytest.mark.slow
@given(arrays(np.float64, (6, 5), elements=st.integers(0, 4).map(float)))
def test_rank_of_a_single_correct_option_agrees_with_scipy(scores):
    correct = np.eye(6, 5, dtype=bool) | (np.arange(6)[:, None] == 5) & (np.arange(5) == 0)
    expected = [
        rankdata(-row, method="average")[np.flatnonzero(right)[0]] for row, right in zip(scores, correct, strict=True)
    ]
    np.testing.assert_allclose(correct_rank(scores, correct), expected)


def test_of_several_correct_options_the_best_counts():
    assert correct_rank(np.array([[3.0, 2.0, 1.0]]), np.array([[False, True, True]])) == [2.0]


def test_a_tie_for_the_first_place_is_no_win():
    ranks = correct_rank(np.array([[1.0, 1.0], [2.0, 1.0]]), np.array([[True, False], [True, False]]))
    assert first(ranks).tolist() == [0.0, 1.0]


def test_a_row_without_a_correct_option_is_absent():
    none = np.zeros((1, 2), dtype=bool)
    assert np.isnan(correct_share(np.ones((1, 2)), none)).all()
    assert np.isnan(first(correct_rank(np.ones((1, 2)), none))).all()


def test_half_precision_mean_agrees_with_numpys_own():
    values = np.random.default_rng(0).random(436)
    assert half_precision_mean(values) == float(values.astype(np.float16).mean())


@pytest.mark.parametrize(("options", "right"), [(2, 1), (5, 1), (6, 2), (5, 4), (3, 3)])
def test_chance_is_the_mean_over_all_orders(options: int, right: int):
    correct = np.arange(options)[None] < right
    orders = [np.array([order], dtype=float) for order in itertools.permutations(range(options))]
    ranks = np.array([correct_rank(order, correct)[0] for order in orders])
    found = chance(correct)
    assert found.share == pytest.approx(np.mean(ranks == 1))
    assert found.reciprocal_rank == pytest.approx(np.mean(1 / ranks))


def test_chance_is_over_the_rows_that_have_a_correct_option():
    correct = np.array([[True, False, False, False], [True, True, False, False], [False] * 4])
    assert chance(correct).share == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert np.isnan(chance(correct[2:])).all()
