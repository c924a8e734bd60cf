"""The jackknife's intervals against their formula, a paired t-test, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.jackknife import dealt, left_out_in_turn

PARTS = 20


def test_people_stay_together_and_kinds_are_spread_evenly() -> None:
    rng = np.random.default_rng(0)
    people = np.repeat([f"person {number}" for number in range(100)], 3)
    kind = np.repeat(rng.integers(0, 4, 100), 3)
    part = dealt(people, kind, PARTS, np.random.default_rng(1))
    for person in np.unique(people):
        assert len(set(part[people == person])) == 1
    assert set(np.bincount(part) // 3) == {5}
    for each in range(4):
        counts = np.bincount(part[::3][kind[::3] == each], minlength=PARTS)
        assert counts.max() - counts.min() <= 1
    other = dealt(people, kind, PARTS, np.random.default_rng(2))
    assert (other != part).any()


def test_of_a_mean_it_is_the_t_interval_of_the_parts_means() -> None:
    """With parts of one size the parts' own means are independent draws, and their t interval is the textbook's."""
    values = np.random.default_rng(3).normal(2, 1, (PARTS, 15))
    without = np.array([[np.delete(values, turn, axis=0).mean()] for turn in range(PARTS)])
    found = left_out_in_turn(np.array([values.mean()]), without)
    expected = stats.t.interval(0.95, PARTS - 1, values.mean(), stats.sem(values.mean(axis=1)))
    assert (found.low[0], found.high[0]) == pytest.approx(expected, rel=1e-9)
    p_value = stats.ttest_1samp(values.mean(axis=1), 0).pvalue
    assert found.p_value[0] == pytest.approx(p_value, rel=1e-9)


def test_what_does_not_vary_or_is_missing_somewhere_has_no_interval() -> None:
    without = np.tile([0.5, 1.0, 2.0], (PARTS, 1))
    without[:, 2] += np.arange(PARTS)
    without[4, 1] = np.nan
    found = left_out_in_turn(np.array([0.5, 1.0, 2.0]), without)
    assert np.isnan(found.low).tolist() == [True, True, False]
    assert np.isnan(found.p_value).tolist() == [True, True, False]


@pytest.mark.slow
def test_paired_differences_are_covered_in_95_of_100_and_are_narrower_than_unpaired_ones() -> None:
    """A ratio of means, the shape of a bias ratio, of two models that err on the same people."""
    rng = np.random.default_rng(4)
    covered = paired = unpaired = 0.0
    repetitions, people = 600, 200
    woman = np.arange(people) % 2 == 0
    for _ in range(repetitions):
        common = rng.gamma(8, 1, people)
        scores = [common * rng.gamma(50, factor, people) for factor in (1.0, 1.0)]
        part = dealt(np.arange(people), woman.astype(int), PARTS, rng)

        def ratio(values: np.ndarray, keep: np.ndarray) -> float:
            return float(values[keep & woman].mean() / values[keep & ~woman].mean())

        everyone = np.ones(people, dtype=bool)
        whole = [ratio(values, everyone) for values in scores]
        turns = np.array([[ratio(values, part != turn) for values in scores] for turn in range(PARTS)])
        both = left_out_in_turn(np.array([whole[1] - whole[0]]), turns[:, 1:] - turns[:, :1])
        alone = left_out_in_turn(np.array(whole), turns)
        covered += both.low[0] <= 0 <= both.high[0]
        paired += both.high[0] - both.low[0]
        unpaired += float(np.hypot(*(alone.high - alone.low)))
    assert 0.925 <= covered / repetitions <= 0.975
    assert paired < 0.6 * unpaired


@pytest.mark.parametrize("reach", [1.0, 2.0])
def test_a_bounded_difference_is_judged_on_fishers_scale_and_stays_between_its_bounds(reach: float) -> None:
    rng = np.random.default_rng(5)
    values = reach * np.array([-0.93, 0.0, 0.5, 0.999])
    without = values + reach * 0.004 * rng.normal(size=(PARTS, 4))
    found = left_out_in_turn(values, without, reach=reach)
    for at, value in enumerate(values):
        spread = np.sqrt((PARTS - 1) ** 2 / PARTS * without[:, at].var(ddof=1))
        z, error = np.arctanh(value / reach), spread / reach / (1 - (value / reach) ** 2)
        expected = stats.t.interval(0.95, PARTS - 1, z, error)
        assert (found.low[at], found.high[at]) == pytest.approx(tuple(reach * np.tanh(expected)), rel=1e-9)
        assert found.p_value[at] == pytest.approx(2 * stats.t.sf(abs(z) / error, PARTS - 1), rel=1e-9)
    assert (np.abs(found.low) <= reach).all()
    assert (np.abs(found.high) <= reach).all()
    wide = left_out_in_turn(values, without)
    assert (np.abs([wide.low, wide.high]) > reach).any()  # what it was without a bound
    assert found.low[1] == pytest.approx(wide.low[1], rel=0.01)
