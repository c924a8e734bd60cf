"""The effect that is called detectable is found as often as it says, in tests that are made and not in formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.power import detectable, detectable_gap, detectable_ratio, group_power, times_as_many


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_detectable_gap_of_two_groups_is_found_four_times_in_five():
    gap = detectable_gap([60, 60], 1.0)
    found = [
        stats.ttest_ind(r.normal(gap, 1, 60), r.normal(0, 1, 60), equal_var=False).pvalue <= 0.05
        for r in (rng(i) for i in range(1500))
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=0.035)


def test_a_detectable_gap_of_five_groups_is_found_four_times_in_five():
    sizes = [30, 40, 40, 50, 60]
    gap = detectable_gap(sizes, 1.0, alpha=0.01)
    found = []
    for i in range(1000):
        r = rng(i)
        groups = [r.normal(gap if place == 0 else 0.0, 1, n) for place, n in enumerate(sizes)]
        found.append(stats.f_oneway(*groups).pvalue <= 0.01)
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)


def test_a_detectable_ratio_is_found_four_times_in_five():
    """The first group's mean falls, its spread stays."""
    sizes, found = (80, 120), []
    ratio = detectable_ratio(sizes, 0.5)
    for i in range(1500):
        a, b = rng(i).normal(ratio, 0.5, 80), rng(i + 9000).normal(1.0, 0.5, 120)
        error = np.hypot(stats.sem(a) / a.mean(), stats.sem(b) / b.mean())
        found.append(abs(np.log(a.mean() / b.mean())) > 1.96 * error)
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)


def test_levels_and_powers_other_than_the_usual_are_kept():
    """z of 1 % on two sides is 2.576, z of 90 % power 1.282."""
    reach = 2.5758 + 1.2816
    assert detectable(0.5, alpha=0.01, power=0.9) == pytest.approx(0.5 * reach, rel=1e-4)
    ratio = detectable_ratio((80, 120), 0.5, alpha=0.01, power=0.9)
    assert -np.log(ratio) == pytest.approx(reach * 0.5 * np.sqrt(1 / (80 * ratio**2) + 1 / 120), rel=1e-4)
    gap = detectable_gap([30, 50], 2.0, alpha=0.01, power=0.9)
    assert group_power([30, 50], gap, 2.0, alpha=0.01) == pytest.approx(0.9)


def test_two_people_show_no_ratio():
    assert detectable_ratio((2, 2), 2.0) == 0.0


def test_power_without_an_effect_is_the_level():
    assert group_power([50, 50, 50], 0.0, 1.0, alpha=0.05) == pytest.approx(0.05)


def test_half_the_effect_takes_four_times_the_images():
    assert times_as_many(detectable_gap([100, 100], 1.0), detectable_gap([400, 400], 1.0)) == pytest.approx(4, rel=0.03)
