"""Calibration against loops that spell it out, and readings against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from metrics.groups import calibration
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from beholder.core.errors import UsageError
from beholder.metrics.calibration import Calibrated, adaptive_bins, cross_fitted, isotonic, platt, reliability


def scored(n: int = 500, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(n), 2)  # many stand on an edge of a bin
    return confidence, rng.random(n) < confidence**2


def ece_by_hand(confidence: np.ndarray, present: np.ndarray, weights: np.ndarray) -> float:
    """Guo et al.: bins ((m-1)/M, m/M], |accuracy - confidence| weighted by size."""
    total = 0.0
    for m in range(1, 11):
        mine = [i for i, c in enumerate(confidence) if (m - 1) / 10 < c <= m / 10 or (m == 1 and c == 0)]
        size = sum(weights[i] for i in mine)
        if size:
            accuracy = sum(weights[i] * present[i] for i in mine) / size
            mean = sum(weights[i] * confidence[i] for i in mine) / size
            total += size / weights.sum() * abs(accuracy - mean)
    return total


def test_ece_equals_the_definition_in_every_draw():
    confidence, present = scored()
    weights = np.random.default_rng(2).poisson(1.0, (500, 5)).astype(float)
    found = calibration(confidence, present, weights).ece
    expected = [ece_by_hand(confidence, present, draw) for draw in weights.T]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_adaptive_bins_hold_as_many_pictures_each_and_keep_ties_together():
    rng = np.random.default_rng(3)
    assert np.bincount(adaptive_bins(rng.random(1000))).tolist() == [100] * 10
    cut = np.where(rng.random(1000) < 0.7, 0.0, rng.random(1000))  # a detector that mostly finds nothing
    bins = adaptive_bins(cut)
    assert len(set(bins[cut == 0])) == 1
    assert len(np.unique(bins)) < 10


def test_brier_is_the_mean_square():
    confidence, present = scored()
    assert calibration(confidence, present).brier[0] == pytest.approx(np.mean((confidence - present) ** 2))


def test_adaptive_error_equals_the_loop_over_its_bins():
    confidence, present = scored()
    bins, total = adaptive_bins(confidence), 0.0
    for number in set(bins):
        mine = bins == number
        total += mine.mean() * abs(present[mine].mean() - confidence[mine].mean())
    assert calibration(confidence, present).adaptive[0] == pytest.approx(total)


def test_pictures_of_a_group_are_picked_by_their_rows():
    confidence, present = scored()
    rows, weights = np.arange(0, 500, 3), np.random.default_rng(8).poisson(1.0, (500, 4)).astype(float)
    found = Calibrated(confidence[rows], present[rows], rows=rows, width=500).errors(weights)
    expected = calibration(confidence[rows], present[rows], weights[rows])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_calibrated_score_has_a_small_error_and_a_constant_one_its_distance():
    rng = np.random.default_rng(4)
    confidence = rng.random(200_000)
    assert calibration(confidence, rng.random(200_000) < confidence).ece[0] < 0.01
    present = np.arange(10) < 3
    found = calibration(np.full(10, 0.9), present)
    assert (found.ece[0], found.adaptive[0]) == pytest.approx((0.6, 0.6))


def test_the_reliability_diagram_adds_up_to_the_error():
    confidence, present = scored()
    bins = reliability(confidence, present)
    assert sum(b.n for b in bins) == 500
    np.testing.assert_allclose([b[:2] for b in bins], [(m / 10, (m + 1) / 10) for m in range(10)])
    assert all(b.low <= b.confidence <= b.high for b in bins)
    total = sum(b.n / 500 * abs(b.shows / b.n - b.confidence) for b in bins)
    assert total == pytest.approx(ece_by_hand(confidence, present, np.ones(500)))


def test_platt_equals_logistic_regression_where_there_are_many():
    rng = np.random.default_rng(5)
    scores = rng.normal(0.25, 0.03, 20_000)
    present = rng.random(20_000) < 1 / (1 + np.exp(-40 * (scores - 0.27)))
    ours = platt(scores, present)(scores)
    theirs = LogisticRegression(C=np.inf, max_iter=1000, tol=1e-10).fit(scores[:, None] * 30, present)
    np.testing.assert_allclose(ours, theirs.predict_proba(scores[:, None] * 30)[:, 1], atol=2e-3)


def test_platt_is_the_likeliest_curve_for_platts_own_targets_where_there_are_few():
    """Platt (1999): 3 of 12 show it, so a hit stands for 4/5 and a miss for 1/11."""
    scores, present = np.random.default_rng(9).normal(5.0, 2.0, 12), np.arange(12) < 3
    target = np.where(present, 4 / 5, 1 / 11)

    def surprise(line: np.ndarray) -> float:
        share = expit(line[0] * scores + line[1])
        return -float((target * np.log(share) + (1 - target) * np.log(1 - share)).sum())

    slope, offset = minimize(surprise, [0.0, 0.0], tol=1e-12).x
    new = np.linspace(0.0, 10.0, 7)
    np.testing.assert_allclose(platt(scores, present)(new), expit(slope * new + offset), atol=1e-5)


def test_platt_stays_finite_where_the_classes_lie_apart():
    found = platt(np.arange(10.0), np.arange(10) >= 5)(np.arange(10.0))
    assert ((found > 0) & (found < 1)).all()


def test_isotonic_equals_scikit_learn():
    scores, present = scored()
    new = np.linspace(-0.2, 1.2, 50)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, present)
    np.testing.assert_allclose(isotonic(scores, present)(new), theirs.predict(new), atol=1e-9)


@pytest.mark.parametrize("reading", ["platt", "isotonic"])
def test_a_reading_makes_cosines_calibrated_and_never_sees_what_it_reads(reading: str):
    rng = np.random.default_rng(6)
    present = rng.random(4000) < 0.2
    cosines = rng.normal(0.22, 0.02, 4000) + 0.05 * present
    read = cross_fitted(cosines, present, reading, rng)
    assert calibration(read, present).ece[0] < 0.03
    noise = cross_fitted(rng.random(4000), present, "isotonic", rng)
    assert abs(np.corrcoef(noise, present)[0, 1]) < 0.08  # fitted to its own pictures it would correlate


def test_too_few_pictures_have_no_reading_and_a_wrong_name_is_refused():
    rng = np.random.default_rng(7)
    assert cross_fitted(np.arange(20.0), np.arange(20) < 4, "platt", rng) is None
    assert cross_fitted(np.arange(20.0), np.arange(20) < 5, "platt", rng) is not None
    with pytest.raises(UsageError, match="platt, isotonic"):
        cross_fitted(np.arange(20.0), np.arange(20) < 8, "temperature", rng)
