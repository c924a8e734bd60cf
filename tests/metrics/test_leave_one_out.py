"""What leaving out pictures tells: the textbook's jackknife, and intervals that cover as they say."""

from __future__ import annotations

import numpy as np
import pytest
from metrics.groups import average_precision, difference_reach
from scipy.integrate import quad
from scipy.stats import norm

from beholder.metrics.average_precision import left_out


def rankings(
    sizes: tuple[int, int], shares: tuple[float, float], quality: tuple[float, float], concepts: int
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    rng, groups = np.random.default_rng(3), np.repeat([0, 1], sizes)
    present = rng.random((len(groups), concepts)) < np.array(shares)[groups][:, None]
    scores = rng.standard_normal(present.shape) + np.array(quality)[groups][:, None] * present
    return scores, present, [groups == 0, groups == 1]


def true_precision(prevalence: float, quality: float) -> float:
    def at(score: float) -> float:
        hit, miss = prevalence * norm.sf(score - quality), (1 - prevalence) * norm.sf(score)
        return float(hit / (hit + miss) * norm.pdf(score - quality))

    return float(quad(at, -8, quality + 8, limit=200)[0])


def test_the_error_is_the_jackknifes():
    scores, present, sets = rankings((30, 40), (0.4, 0.3), (1.0, 1.0), 2)
    scores[5, 1] = np.nan
    _, matched = left_out(scores, present, sets, np.arange(70))
    for concept in range(2):
        common = present[~np.isnan(scores[:, concept]), concept].mean()
        for place, mine in enumerate(sets):
            rows = np.flatnonzero(mine & ~np.isnan(scores[:, concept]))
            s, p = scores[rows, concept], present[rows, concept]
            value = average_precision(s, p, prevalence=common)
            each = np.array(
                [average_precision(np.delete(s, i), np.delete(p, i), prevalence=common) for i in range(len(s))]
            )
            n = len(each)
            assert matched.value[place, concept] == pytest.approx(value, abs=1e-12)
            error = np.sqrt((n - 1) / n * ((each - each.mean()) ** 2).sum())
            assert matched.error[place, concept] == pytest.approx(error, abs=1e-10)


def test_a_person_photographed_twice_counts_once():
    scores, present, sets = rankings((40, 40), (0.4, 0.4), (1.0, 1.0), 1)
    doubled = [np.repeat(each, 2, axis=0) for each in (scores, present)]
    twice = [np.repeat(each, 2) for each in sets]
    once = left_out(scores, present, sets, np.arange(80))[0]
    apart = left_out(*doubled, twice, np.arange(160))[0]
    together = left_out(*doubled, twice, np.repeat(np.arange(80), 2))[0]
    np.testing.assert_allclose(together.error, once.error, rtol=0.12)
    assert (apart.error < 0.8 * once.error).all()


def test_a_ranking_without_a_fault_has_no_interval():
    present = np.arange(40)[:, None] % 4 == 0
    for scores in (present * 1.0, np.zeros((40, 1))):  # all right, and all alike
        _, matched = left_out(scores, present, [np.ones(40, dtype=bool)], np.arange(40))
        assert np.isnan(matched.reach(0, 0)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "shares", "quality"),
    [
        ((400, 400), (0.3, 0.75), (1.5, 1.0)),
        ((400, 400), (0.1875, 0.75), (1.5, 1.0)),
        ((200, 200), (0.05, 0.5), (2.0, 0.5)),
        ((400, 400), (0.4, 0.15), (1.5, 1.5)),
    ],
)
def test_gaps_are_covered_whatever_the_counts_and_qualities(
    sizes: tuple[int, int], shares: tuple[float, float], quality: tuple[float, float]
):
    """Draws of a bootstrap covered these in 92 to 94 of 100."""
    worlds, common = 3000, sum(shares) / 2
    scores, present, sets = rankings(sizes, shares, quality, worlds)
    truth = true_precision(common, quality[0]) - true_precision(common, quality[1])
    _, found = left_out(scores, present, sets, np.arange(sum(sizes)))
    gaps = found.value[0] - found.value[1]
    inside = []
    for world, gap in enumerate(gaps):
        reach = difference_reach(found.reach(0, world), found.reach(1, world))
        if np.isfinite(reach.below):
            inside.append(gap - reach.below <= truth <= gap + reach.above)
    assert abs(np.nanmean(gaps) - truth) < 0.02
    assert len(inside) > 0.95 * worlds
    assert 0.93 < np.mean(inside) < 0.97
