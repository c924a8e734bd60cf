"""Miscalibration: the loop over pairs, no trace of the groups' sizes, intervals that cover."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from beholder.metrics.calibration import calibration
from beholder.metrics.intervals import difference_reach
from beholder.metrics.miscalibration import Miscalibration, miscalibration


def world(n: int, rng: np.random.Generator, *, off: float = 0.0, lumps: bool = False):
    """Confidences and what is there; `off` is how far too low confidence is in the middle; `lumps`: a detector's 0."""
    confidence = rng.beta(1.0, 2.0, n)
    if lumps:
        confidence[rng.random(n) < 0.8] = 0.0
    return confidence, rng.random(n) < np.clip(confidence + 4 * off * confidence * (1 - confidence), 0, 1)


def by_pairs(confidence: np.ndarray, present: np.ndarray, people: np.ndarray) -> float:
    """In every bin the mean product of two pictures' errors, over pairs that show two people."""
    total, counted = 0.0, 0
    for m in range(1, 11):
        mine = [i for i, c in enumerate(confidence) if (m - 1) / 10 < c <= m / 10 or (m == 1 and c == 0)]
        pairs = [(i, j) for i, j in combinations(mine, 2) if people[i] != people[j]]
        if pairs:
            off = confidence - present
            total += len(mine) * np.mean([off[i] * off[j] for i, j in pairs])
        counted += len(mine)
    return total / counted


@pytest.mark.parametrize("people", [np.arange(80), np.arange(80) // 3])
def test_it_is_the_mean_product_of_two_peoples_errors(people: np.ndarray):
    confidence, present = world(80, np.random.default_rng(1))
    found = miscalibration(confidence, present, people)
    assert found.value == pytest.approx(by_pairs(confidence, present, people), abs=1e-12)
    assert found.reach.below > 0
    assert found.reach.above > 0


def test_its_root_is_the_distance_where_all_are_off_alike():
    rng = np.random.default_rng(2)
    confidence = rng.uniform(0.3, 0.7, 400_000)
    found = miscalibration(confidence, rng.random(400_000) < confidence - 0.2)
    assert np.sqrt(found.value) == pytest.approx(0.2, abs=0.005)


def test_without_a_pair_there_is_nothing_and_without_chance_no_interval():
    one = miscalibration(np.array([0.05, 0.55]), np.array([True, False]))
    assert np.isnan(one.value)
    assert np.isnan(miscalibration(np.empty(0), np.empty(0, dtype=bool)).value)
    certain = miscalibration(np.zeros(30), np.zeros(30, dtype=bool))
    assert certain.value == 0
    assert np.isnan(certain.reach).all()


def gaps(
    sizes: tuple[int, int], worlds: int, *, off: float = 0.0, lumps: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of worlds whose groups are calibrated alike: gaps, whether 0 is inside their interval, and gaps of ECE."""
    rng, found = np.random.default_rng(7), []
    for _ in range(worlds):
        drawn = [world(n, rng, off=off, lumps=lumps) for n in sizes]
        first, second = (miscalibration(*each) for each in drawn)
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
    """Of these expected calibration error makes gaps of 1 to 6 points."""
    gap, inside, ece = gaps(sizes, 1500, off=off, lumps=lumps)
    assert abs(gap.mean()) < 3 * gap.std() / np.sqrt(len(gap))
    assert ece.mean() < -5 * ece.std() / np.sqrt(len(ece))
    assert 0.93 < inside.mean() < 0.97


def test_equally_large_groups_err_on_the_safe_side():
    _, inside, _ = gaps((200, 200), 300)
    assert inside.mean() >= 0.95


def test_a_true_gap_is_found():
    rng = np.random.default_rng(3)
    good, bad = (miscalibration(*world(600, rng, off=off)) for off in (0.0, 0.25))
    gap, reach = bad.value - good.value, difference_reach(bad.reach, good.reach)
    assert gap - reach.below > 0
    assert isinstance(good, Miscalibration)
