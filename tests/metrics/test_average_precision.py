"""Average precision against scikit-learn, and against loops that spell it out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metrics.groups import average_precision
from sklearn.metrics import average_precision_score

from beholder.metrics.average_precision import Ranking


def tied(seed: int, n: int, levels: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of a few levels, so that many are tied; at least one picture shows the concept."""
    rng = np.random.default_rng(seed)
    present = rng.random(n) < share
    present[rng.integers(n)] = True
    return rng.integers(0, levels, n) / 7, present, rng.poisson(1.0, n)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**6), st.integers(1, 200), st.integers(1, 60), st.floats(0, 1))
def test_it_equals_scikit_learn_with_ties_and_weights(seed: int, n: int, levels: int, share: float):
    scores, present, weights = tied(seed, n, levels, share)
    assert average_precision(scores, present) == pytest.approx(average_precision_score(present, scores), abs=1e-12)
    if weights[present].any():
        expected = average_precision_score(present, scores, sample_weight=weights)
        assert average_precision(scores, present, weights) == pytest.approx(expected, abs=1e-12)


def test_all_draws_at_once_equal_one_draw_at_a_time():
    scores, present, _ = tied(1, 400, 40, 0.1)
    weights = np.random.default_rng(2).poisson(1.0, (400, 30))
    found = Ranking(scores, present).counts(weights.astype(np.float32)).average_precision()
    expected = [average_precision_score(present, scores, sample_weight=w) for w in weights.T]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_pictures_of_a_group_are_ranked_among_themselves():
    scores, present, weights = tied(3, 100, 20, 0.3)
    rows = np.flatnonzero(np.arange(100) % 3 == 0)
    ranking = Ranking(scores[rows], present[rows], rows=rows, width=100)
    found = ranking.counts(weights[:, None].astype(np.float64)).average_precision()[0]
    assert found == pytest.approx(average_precision(scores[rows], present[rows], weights[rows]), abs=1e-12)


def test_importance_is_a_weight_in_every_draw():
    scores, present, weights = tied(6, 80, 20, 0.3)
    importance = np.random.default_rng(7).random(80)
    found = Ranking(scores, present, importance=importance).counts(weights[:, None].astype(float))
    expected = average_precision_score(present, scores, sample_weight=weights * importance)
    assert found.average_precision()[0] == pytest.approx(expected, abs=1e-6)


def test_another_prevalence_is_that_of_pictures_shown_more_often():
    """With every picture without the concept there three times, prevalence 1/2 becomes 1/4."""
    rng = np.random.default_rng(4)
    present = np.arange(60) % 2 == 0
    scores = rng.normal(size=60) + present
    often = np.concatenate([np.arange(60), *[np.flatnonzero(~present)] * 2])
    assert present.mean() == 0.5
    assert present[often].mean() == 0.25
    expected = average_precision_score(present[often], scores[often])
    assert average_precision(scores, present, prevalence=0.25) == pytest.approx(expected, abs=1e-12)


def test_its_own_prevalence_changes_nothing():
    scores, present, _ = tied(5, 300, 300, 0.2)
    assert average_precision(scores, present, prevalence=present.mean()) == pytest.approx(
        average_precision(scores, present), abs=1e-12
    )


def test_a_concept_of_which_no_picture_was_scored_is_absent():
    none = Ranking(np.array([]), np.array([], dtype=bool), rows=np.array([], dtype=int), width=3)
    assert none.steps == 0
    assert none.left_out().shape == (0,)


def test_absent_is_absent():
    scores = np.array([0.3, 0.2, np.nan])
    assert np.isnan(average_precision(scores, np.array([False, False, False])))
    assert np.isnan(average_precision(scores, np.array([False, False, True])))  # the only one has no score
    assert np.isnan(average_precision(scores[:2], np.array([True, True]), prevalence=0.5))
    assert average_precision(scores, np.array([True, False, True])) == 1.0


@pytest.mark.parametrize("prevalence", [None, 0.3])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_leaving_out_each_picture_equals_measuring_without_it(prevalence: float | None, share: float):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        scores = np.round(rng.normal(size=25), 1)  # with ties
        present = rng.random(25) < share
        present[0] = True
        with np.errstate(divide="ignore", invalid="ignore"):
            slow = [
                average_precision(np.delete(scores, i), np.delete(present, i), prevalence=prevalence) for i in range(25)
            ]
        np.testing.assert_allclose(Ranking(scores, present).left_out(prevalence), slow, atol=1e-12)
