"""Intervals of the right kind: by cluster, equal to the loop and to scipy, and covering what they should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.intervals import (
    Estimate,
    Resampler,
    exact_proportion_interval,
    mean_estimate,
    mean_interval,
    percentile_interval,
    ratio_estimate,
    studentised_interval,
    studentised_tails,
    wilson_interval,
)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def estimate(n: int = 30, seed: int = 2, draws: int = 4000) -> tuple[np.ndarray, Estimate]:
    values = rng(seed).gamma(1.0, 1.0, n)
    return values, mean_estimate(values, Resampler(np.arange(n), rng(seed + 1), draws))


def test_without_clusters_the_error_is_that_of_a_mean():
    values, found = estimate()
    assert (found.value, found.error) == pytest.approx((values.mean(), stats.sem(values)))


def test_in_every_draw_mean_and_error_are_those_of_the_drawn_clusters():
    """Against the obvious loop: sums and sizes of clusters, drawn again and again."""
    values, clusters = rng(3).random(9), np.array(list("aaabbcdee"))
    values[4] = np.nan
    resampler = Resampler(clusters, rng(), draws=40)
    found = mean_estimate(values, resampler)
    sums = np.array([np.nansum(values[clusters == name]) for name in "abcde"])
    sizes = np.array([(~np.isnan(values[clusters == name])).sum() for name in "abcde"])
    for draw, mean, error in zip(np.concatenate(list(resampler.weights())), found.draws, found.errors, strict=True):
        often = np.array([draw[clusters == name][0] for name in "abcde"]).astype(int)
        s, n = np.repeat(sums, often), np.repeat(sizes, often)
        assert mean == pytest.approx(s.sum() / n.sum())
        squares = ((s - s.sum() / n.sum() * n) ** 2).sum()
        assert error == pytest.approx(np.sqrt(squares * 5 / 4) / n.sum())


def test_pictures_of_one_person_widen_the_error():
    values = np.repeat(rng(4).random(20), 5)
    alone, together = (
        mean_estimate(values, Resampler(clusters, rng(), 10)).error
        for clusters in (np.arange(100), np.repeat(np.arange(20), 5))
    )
    assert together > 2 * alone


def test_the_studentised_interval_is_that_of_the_loop():
    values = rng(2).gamma(1.0, 1.0, 30)
    resampler = Resampler(np.arange(30), rng(3), 1000)
    t = []
    for draw in np.concatenate(list(resampler.weights())).astype(int):
        drawn = np.repeat(values, draw)
        t.append((drawn.mean() - values.mean()) / stats.sem(drawn))
    low, high = np.quantile(t, [0.025, 0.975])
    expected = (values.mean() - high * stats.sem(values), values.mean() - low * stats.sem(values))
    assert studentised_interval(mean_estimate(values, resampler)) == pytest.approx(expected)


def test_on_the_log_scale_a_ratio_turned_over_has_the_bounds_turned_over():
    (_, top), (_, bottom) = estimate(25, 5), estimate(60, 6)
    low, high = studentised_interval(ratio_estimate(top, bottom), scale="log")
    under, over = studentised_interval(ratio_estimate(bottom, top), scale="log")
    assert (low, high) == pytest.approx((1 / over, 1 / under))


def test_the_error_of_a_ratio_is_the_spread_of_its_draws():
    (_, top), (_, bottom) = estimate(200, 5), estimate(300, 6)
    found = ratio_estimate(top, bottom)
    assert found.error == pytest.approx(found.draws.std(), rel=0.1)


def test_in_every_draw_the_error_of_a_ratio_is_that_of_its_two_means():
    """The delta method, written out for each draw of groups that were drawn apart."""
    (_, top), (_, bottom) = estimate(25, 5, draws=20), estimate(60, 6, draws=20)
    top = top._replace(draws=10 * top.draws, errors=10 * top.errors)
    found = ratio_estimate(top, bottom)
    for a, b, sa, sb, error in zip(top.draws, bottom.draws, top.errors, bottom.errors, found.errors, strict=True):
        assert error == pytest.approx(np.sqrt(sa**2 / b**2 + a**2 * sb**2 / b**4))


def test_a_p_value_says_what_the_interval_says():
    _, found = estimate()
    for level, alpha in ((0.95, 0.05), (0.8, 0.2)):
        for bound in studentised_interval(found, level):
            assert 2 * min(studentised_tails(found, bound)) == pytest.approx(alpha, abs=0.002)


@pytest.mark.parametrize(("hits", "n"), [(1, 20), (7, 9), (50, 100)])
def test_wilsons_bounds_agree_with_scipy(hits: int, n: int):
    expected = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(hits, n) == pytest.approx((expected.low, expected.high))


def test_all_successes_have_the_exact_interval():
    low, high = mean_interval(np.ones(10), Resampler(np.arange(10), rng()))
    expected = stats.binomtest(10, 10).proportion_ci(0.95, method="exact")
    assert (low, high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1 / 9, 1234.5678])
def test_equal_values_have_no_error_whatever_their_binary_fractions(value: float):
    clusters = np.arange(37) // 2
    found = mean_estimate(np.full(37, value), Resampler(clusters, rng(), 200))
    assert found.error == 0
    assert (found.errors == 0).all()
    assert np.isnan(studentised_tails(ratio_estimate(found, found), 1.0, scale="log")).all()


def test_shares_of_different_people_have_wilsons_interval_and_of_the_same_people_not():
    hits = np.arange(12) < 5
    expected = stats.binomtest(5, 12).proportion_ci(0.95, method="wilson")
    assert mean_interval(hits * 1.0, Resampler(np.arange(12), rng())) == pytest.approx(tuple(expected))
    paired = mean_interval(hits * 1.0, Resampler(np.arange(12) // 2, rng()))
    assert paired.high - paired.low > 1.05 * (expected.high - expected.low)


@pytest.mark.parametrize(("last", "scale"), [(1.0, "logit"), (0.0, "logit"), (1.5, "plain"), (-0.1, "plain")])
def test_what_lies_between_0_and_1_is_a_probability_and_what_lies_beyond_is_none(last: float, scale: str):
    values = np.append(rng(2).random(30), last)
    resampler = Resampler(np.arange(31), rng(), 500)
    expected = studentised_interval(mean_estimate(values, resampler), scale=scale)
    assert mean_interval(values, resampler) == expected


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_values_that_are_alike_have_an_exact_interval_only_where_they_are_yes_or_no(value: float):
    """Two pictures of each of nine people, of whom one has no score: eight people say so."""
    values = np.append(np.full(16, value), [np.nan, np.nan])
    found = mean_interval(values, Resampler(np.arange(18) // 2, rng(), 200))
    if value == 0.5:
        assert np.isnan(found).all()
    else:
        expected = stats.binomtest(int(8 * value), 8).proportion_ci(0.95, method="exact")
        assert found == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("people", "told"), [(4, False), (5, True)])
def test_fewer_than_five_people_have_no_interval(people: int, told: bool):
    values = rng(3).random(10)
    low, high = mean_interval(values, Resampler(np.arange(10) % people, rng(), 500))
    assert (np.isfinite(low), np.isfinite(high)) == (told, told)


def test_one_value_has_no_interval():
    assert np.isnan(mean_interval(np.array([0.3]), Resampler(np.arange(1), rng()))).all()


def test_probabilities_keep_their_interval_between_0_and_1():
    values = rng(1).beta(0.05, 2, 40)
    low, high = mean_interval(values, Resampler(np.arange(40), rng(), 500))
    assert 0 < low < values.mean() < high < 1


def test_equal_generators_give_equal_intervals():
    values = rng(5).random(40)
    one, two = (mean_interval(values, Resampler(np.arange(40), rng(9))) for _ in range(2))
    assert one == two


@pytest.mark.slow
def test_a_95_percent_interval_covers_a_small_mean_where_percentiles_do_not():
    """Shares of belief near 0: 60 people, true mean 0.1."""
    generator, ours, percentiles = rng(11), 0, 0
    for _ in range(400):
        values = generator.beta(0.1, 0.9, 60)
        resampler = Resampler(np.arange(60), generator, draws=400)
        low, high = mean_interval(values, resampler)
        ours += low <= 0.1 <= high
        low, high = percentile_interval(resampler.means(values))
        percentiles += low <= 0.1 <= high
    assert 0.92 <= ours / 400 <= 0.98
    assert percentiles < ours


def test_a_ratio_whose_top_is_nothing_is_0_and_has_no_interval() -> None:
    resampler = Resampler(np.arange(8), rng(), 200)
    nothing, something = mean_estimate(np.zeros(8), resampler), mean_estimate(rng().random(8), resampler)
    found = ratio_estimate(nothing, something)
    assert found.value == 0
    assert np.isnan(found.error)
    assert not np.isfinite(ratio_estimate(something, nothing).value)


@pytest.mark.parametrize(("hits", "n"), [(1, 100), (7, 40), (39, 40)])
def test_the_bounds_of_yes_and_no_are_the_exact_ones_of_a_share(hits: int, n: int) -> None:
    expected = stats.binomtest(hits, n).proportion_ci(method="exact")
    assert exact_proportion_interval(hits / n * n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_mean_that_two_of_hundreds_carry_is_no_less_sure_than_a_share() -> None:
    values = rng(8).lognormal(np.log(0.002), 1.0, 436).clip(0, 0.2)
    values[[3, 50]] = 0.7, 0.4
    resampler = Resampler(np.arange(436), rng(9), 1000)
    low, high = mean_interval(values, resampler)
    bounds = exact_proportion_interval(436 * values.mean(), 436)
    assert bounds.low <= low < values.mean() < high
    assert high == pytest.approx(bounds.high, rel=1e-9)
    assert studentised_interval(mean_estimate(values, resampler), scale="logit").high > 3 * high


def test_pictures_of_one_person_count_as_one_person_for_those_bounds() -> None:
    """Each of 60 people three times: as wide as 60 people, not as 180."""
    one = rng(8).lognormal(np.log(0.002), 1.0, 60).clip(0, 0.2)
    one[3] = 0.9
    thrice = mean_interval(np.repeat(one, 3), Resampler(np.repeat(np.arange(60), 3), rng(9), 1000))
    assert thrice.high == pytest.approx(exact_proportion_interval(60 * one.mean(), 60).high, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("people", "known", "least", "most"), [(436, 0.005, 85, 97), (100, 0.01, 50, 75)])
def test_the_bounds_cost_no_coverage_and_make_intervals_narrower(
    people: int, known: float, least: float, most: float
) -> None:
    """A few people are known, all others near 0. Where none of the known was drawn, no interval holds the mean."""
    source, worlds = rng(5), 200

    def drawn(n: int) -> np.ndarray:
        near_0 = source.lognormal(np.log(0.002), 1.0, n).clip(0, 0.2)
        return np.where(source.random(n) < known, source.uniform(0.3, 1, n), near_0)

    truth = drawn(1_000_000).mean()
    held, width = np.zeros(2), np.zeros(2)
    for _ in range(worlds):
        values = drawn(people)
        resampler = Resampler(np.arange(people), source, 500)
        alone = studentised_interval(mean_estimate(values, resampler), scale="logit")
        for place, (low, high) in enumerate((alone, mean_interval(values, resampler))):
            held[place] += low <= truth <= high
            width[place] += high - low
    assert held[1] == held[0]
    assert width[0] > 3 * width[1]
    assert least <= 100 * held[1] / worlds <= most


@pytest.mark.parametrize(("people", "share", "alike"), [(10, 0.05, 0.5), (10, 0.2, 0.9), (30, 0.05, 0.9)])
def test_yes_and_no_of_few_people_with_three_pictures_each_are_covered(people: int, share: float, alike: float):
    """Studentised draws covered these in 74, 74 and 70 of 100 worlds."""
    rng, covered = np.random.default_rng(4), 0
    shown = np.repeat(np.arange(people), 3)
    for world in range(200):
        own = rng.beta(share * (1 - alike) / alike, (1 - share) * (1 - alike) / alike, people)
        said = (rng.random(len(shown)) < own[shown]).astype(float)
        low, high = mean_interval(said, Resampler(shown, np.random.default_rng(world), 50))
        covered += low <= share <= high
    assert covered >= 180
