"""Miscalibration: the loop over pairs, no trace of the groups' sizes, intervals that cover."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from metrics.groups import calibration, difference_reach
from scipy.special import expit, logit

from beholder.metrics.calibration import MatchedBins, Miscalibration, miscalibration


def world(n: int, rng: np.random.Generator, *, off: float = 0.0, lumps: bool = False):
    """Confidences and what is there; `off` is how far too low confidence is in the middle; `lumps`: a detector's 0."""
    confidence = rng.beta(1.0, 2.0, n)
    if lumps:
        confidence[rng.random(n) < 0.8] = 0.0
    return confidence, rng.random(n) < np.clip(confidence + 4 * off * confidence * (1 - confidence), 0, 1)


def by_pairs(confidence: np.ndarray, present: np.ndarray, prevalence: float) -> float:
    """In every bin the products of two pictures' errors, over all pairs; either kind has its share."""
    off, total = confidence - present, 0.0
    shares = {True: prevalence, False: 1 - prevalence}
    sizes = {kind: int((present == kind).sum()) for kind in shares}
    for m in range(1, 11):
        mine = [i for i, c in enumerate(confidence) if (m - 1) / 10 < c <= m / 10 or (m == 1 and c == 0)]
        square = 0.0
        for i, j in permutations(mine, 2):
            first, second = bool(present[i]), bool(present[j])
            pairs = sizes[first] * (sizes[first] - 1 if first == second else sizes[second])
            square += shares[first] * shares[second] * off[i] * off[j] / pairs
        if mine:
            total += square / sum(shares[bool(present[i])] / sizes[bool(present[i])] for i in mine)
    return total


@pytest.mark.parametrize("prevalence", [0.1, 0.3, 0.6])
def test_it_is_the_product_of_two_pictures_errors_at_a_prevalence(prevalence: float):
    confidence, present = world(80, np.random.default_rng(1))
    found = miscalibration(confidence, present, prevalence=prevalence)
    assert found.value == pytest.approx(by_pairs(confidence, present, prevalence), abs=1e-12)
    assert found.reach.below > 0
    assert found.reach.above > 0


def test_many_sets_at_once_are_the_single_ones():
    confidence, present = world(300, np.random.default_rng(4), lumps=True)
    members = np.random.default_rng(5).random((300, 6)) < 0.5
    found = MatchedBins(confidence, present, 0.4).miscalibrations(members.astype(np.float32))
    expected = [miscalibration(confidence[m], present[m], prevalence=0.4).value for m in members.T]
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert np.isnan(MatchedBins(confidence, present, 0.4).miscalibrations(np.zeros((300, 1), np.float32))).all()


def test_pictures_of_one_person_are_no_more_evidence_than_one():
    confidence, present = world(80, np.random.default_rng(1))
    once = miscalibration(confidence, present, prevalence=0.3)
    tripled = (np.repeat(each, 3) for each in (confidence, present, np.arange(80)))
    thrice = miscalibration(*tripled, prevalence=0.3)
    assert thrice.value == pytest.approx(once.value)
    assert thrice.reach == pytest.approx(once.reach)


def test_a_confidence_that_is_right_for_all_has_no_gap_that_follows_prevalence():
    """Half of all pictures show it, 80 % of one group's and 20 % of the other's; the score knows nothing of groups."""
    rng, gaps = np.random.default_rng(6), []
    for _ in range(300):
        present = np.concatenate([np.arange(300) < 240, np.arange(300) < 60])
        confidence = expit(1.5 * (rng.standard_normal(600) + 1.5 * present - 0.75))
        sides = [slice(300), slice(300, None)]
        gaps.append(np.subtract(*(miscalibration(confidence[s], present[s], prevalence=0.5).value for s in sides)))
    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / np.sqrt(len(gaps))
    own = [miscalibration(confidence[s], present[s], prevalence=present[s].mean()).value for s in sides]
    assert min(own) > 0.01  # at its own prevalence, each group is off


@pytest.mark.slow
def test_its_root_is_the_distance_where_all_are_off_alike():
    rng = np.random.default_rng(2)
    confidence = rng.uniform(0.3, 0.7, 400_000)
    found = miscalibration(confidence, rng.random(400_000) < confidence - 0.2, prevalence=0.3)
    assert np.sqrt(found.value) == pytest.approx(0.2, abs=0.005)


def test_without_two_people_of_either_kind_there_is_nothing_and_without_chance_no_interval():
    one = miscalibration(np.array([0.05, 0.55]), np.array([True, False]), prevalence=0.5)
    assert np.isnan(one.value)
    assert np.isnan(miscalibration(np.empty(0), np.empty(0, dtype=bool), prevalence=0.5).value)
    certain = miscalibration(np.zeros(30), np.zeros(30, dtype=bool), prevalence=0.0)
    assert certain.value == 0
    assert np.isnan(certain.reach).all()


def gaps(
    sizes: tuple[int, int], worlds: int, *, off: float = 0.0, lumps: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of worlds whose groups are calibrated alike: gaps, whether 0 is inside their interval, and gaps of ECE."""
    rng, found = np.random.default_rng(7), []
    for _ in range(worlds):
        drawn = [world(n, rng, off=off, lumps=lumps) for n in sizes]
        share = float(np.concatenate([present for _, present in drawn]).mean())
        first, second = (miscalibration(*each, prevalence=share) for each in drawn)
        gap, reach = first.value - second.value, difference_reach(first.reach, second.reach)
        eces = [calibration(*each).ece[0] for each in drawn]
        found.append((gap, -reach.below <= -gap <= reach.above, eces[0] - eces[1]))
    return tuple(np.array(found, dtype=float).T)  # type: ignore[return-value]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "off", "lumps"),
    [
        ((900, 150), 0.0, False),
        ((900, 100), 0.0, False),
        ((5000, 100), 0.0, False),
        ((900, 150), 0.0, True),
        ((900, 150), 0.1, False),
    ],
)
def test_a_gap_between_groups_calibrated_alike_is_nought_whatever_their_sizes(
    sizes: tuple[int, int], off: float, lumps: bool
):
    """Of these expected calibration error makes gaps of 1 to 6 points. Intervals err on the safe side."""
    gap, inside, ece = gaps(sizes, 1500, off=off, lumps=lumps)
    assert abs(gap.mean()) < 3 * gap.std() / np.sqrt(len(gap))
    assert ece.mean() < -5 * ece.std() / np.sqrt(len(ece))
    assert inside.mean() > 0.93


def test_equally_large_groups_err_on_the_safe_side():
    _, inside, _ = gaps((200, 200), 300)
    assert inside.mean() >= 0.95


def test_a_true_gap_is_found():
    """Twice the log-odds: too sure."""
    rng = np.random.default_rng(3)
    drawn = [world(600, rng) for _ in range(2)]
    drawn[1] = expit(2 * logit(drawn[1][0])), drawn[1][1]
    good, bad = (miscalibration(*each, prevalence=1 / 3) for each in drawn)
    gap, reach = bad.value - good.value, difference_reach(bad.reach, good.reach)
    assert gap - reach.below > 0
    assert isinstance(good, Miscalibration)
