"""The engine that judges every difference: exact where it can be, honest about spread, blind to nothing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import expit

from beholder.comparison.family import DIFFERENCE, TOO_LITTLE, comparison_at, judge, largest_of, part_from_null
from beholder.comparison.groups import Groups, People, additive_strata, group_by, people_of, strata_of
from beholder.comparison.means import OPEN, ShuffledGroups, compare_groups, compare_slopes, levels_of, ratio_bounds
from beholder.comparison.power import Design, detectable, noise_of
from beholder.comparison.shuffles import Shuffles, arrangements, exchanged


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def two_groups(first: int, second: int) -> tuple[Groups, People]:
    return Groups("gender", ["woman", "man"], np.repeat([0, 1], [first, second])), People(np.arange(first + second))


def test_a_wholly_biased_model_is_found_from_five_and_five_people_on(rng):
    for first, second in ((5, 5), (10, 10), (30, 30), (5, 40)):
        groups, people = two_groups(first, second)
        (judged,) = judge([compare_groups(np.repeat([1.0, 0.0], [first, second]), groups, people, rng)])
        found = comparison_at(judged, (0, 0), "woman", "man")
        assert found.verdict == DIFFERENCE
        assert 0 < found.low < 1


def test_below_five_people_or_forty_arrangements_nothing_is_said(rng):
    groups, people = two_groups(4, 40)
    (judged,) = judge([compare_groups(np.repeat([1.0, 0.0], [4, 40]), groups, people, rng)])
    assert comparison_at(judged, (0, 0)).verdict == TOO_LITTLE
    table = pl.DataFrame({"gender": ["w", "m"] * 5, "seed": np.repeat(np.arange(5), 2).astype(str)})
    (judged,) = judge([compare_groups(np.tile([1.0, 0.0], 5), group_by(table, ("gender",)), people_of(table), rng)])
    assert judged.arrangements == 32
    assert comparison_at(judged, (0, 0)).verdict == TOO_LITTLE


def halls_t(first: np.ndarray, second: np.ndarray) -> float:
    """Welch's t, made symmetric by the third moments (Hall 1992), by as much as at four errors where it is larger."""
    t = stats.ttest_ind(first, second, equal_var=False).statistic
    error = np.sqrt(sum(each.var(ddof=1) / len(each) for each in (first, second)))
    third = [stats.kstat(each, 3) / len(each) ** 2 for each in (first, second)]
    skew = (third[0] - third[1]) / error**3
    near = np.clip(t, -4, 4)
    return t + skew * near**2 / 3 + skew**2 * near**3 / 27 + skew / 6


def test_a_strong_difference_of_skewed_scores_is_found(rng):
    """Beliefs near 15 % and 85 % lean towards the middle: their skewness must not hide 70 points."""
    called, (groups, people) = 0, two_groups(12, 12)
    for _ in range(60):
        beliefs = expit(rng.normal(size=(24, 10)))
        beliefs[:, 0] = expit(1.3 * rng.normal(size=24) + np.repeat([2.5, -2.5], 12))
        called += judge([compare_groups(beliefs, groups, people, rng, shuffles=299)])[0].found[0, 0]
    assert called >= 57


def test_few_people_get_the_exact_permutation_test(rng):
    values = rng.normal(size=10) + np.repeat([2.0, 0.0], 5)
    part = compare_groups(values, *two_groups(5, 5), rng)
    t = np.abs([halls_t(values[list(c)], np.delete(values, c)) for c in combinations(range(10), 5)])
    assert part.exact
    assert part.arrangements == 252
    # floored by a normal null, so p is at least the plain permutation's
    assert judge([part])[0].p_value[0, 0] >= (t >= t[0] - 1e-9).mean() - 0.02


def test_a_few_large_scores_do_not_pass_for_a_difference(rng):
    """Skewed scores that spread three times as far in a small group of equal mean."""
    called, (groups, people) = 0, two_groups(12, 40)
    for _ in range(200):
        values = rng.lognormal(size=52) - np.exp(0.5)
        values[:12] *= 3
        called += judge([compare_groups(values, groups, people, rng, shuffles=199)])[0].found.any()
    assert called <= 24  # without the third moments about 28


def test_errors_are_welchs(rng):
    values = np.concatenate([rng.normal(size=12), 3 * rng.normal(size=30)])
    groups, people = two_groups(12, 30)
    part = compare_groups(values, groups, people, rng, shuffles=99)
    welch = stats.ttest_ind(values[:12], values[12:], equal_var=False)
    assert part.value[0, 0] / part.error[0, 0] == pytest.approx(welch.statistic)
    assert part.freedom[0, 0] == pytest.approx(welch.df)


def test_within_cells_the_difference_is_mantel_haenszels(rng):
    table = pl.DataFrame({"gender": list("wwwmmwmmm"), "branch": list("aaaaabbbb")})
    groups, people = group_by(table, ("gender",)), People(np.arange(9))
    values = rng.normal(size=9)
    strata = strata_of(table, groups, ["branch"], people)._replace(labels=("branch",), cells=np.repeat([0, 1], [5, 4]))
    part = compare_groups(values, groups, people, rng, strata=strata, shuffles=99)
    gaps, weights = [], []
    for branch in "ab":
        inside = (table["branch"] == branch).to_numpy()
        w, m = (values[inside & (table["gender"] == g).to_numpy()] for g in "wm")
        gaps.append(m.mean() - w.mean())
        weights.append(len(w) * len(m) / (len(w) + len(m)))
    assert part.value[0, 0] == pytest.approx(np.average(gaps, weights=weights))


def test_a_shuffle_within_cells_equals_a_fit_to_moved_labels(rng):
    table = pl.DataFrame({"g": list("ab") * 12, "s": np.repeat(["x", "y", "z"], 8)})
    groups, people = group_by(table, ("g",)), People(np.arange(24))
    values = rng.normal(size=24)
    strata = strata_of(table, groups, ["s"], people)
    from beholder.comparison.means import _Fit, units_of

    units = units_of(values[:, None], groups, people, strata)
    fit = _Fit(units, 2)
    move = next(Shuffles(units.groups, units.blocks, rng, 5).parts())[0]
    again = _Fit(units._replace(groups=units.groups[move]), 2)
    np.testing.assert_allclose(fit.weights[:, move], again.weights, atol=1e-12)


def test_someone_shown_in_both_groups_is_compared_with_themselves(rng):
    n = 12
    table = pl.DataFrame({"gender": ["w", "m"] * n, "seed": np.repeat(np.arange(n), 2).astype(str)})
    own = 10 * rng.normal(size=n)
    values = np.repeat(own, 2) + rng.normal(size=2 * n) * 0.1 + np.tile([0.5, 0.0], n)
    part = compare_groups(values, group_by(table, ("gender",)), people_of(table), rng)
    paired = stats.ttest_rel(values[1::2], values[0::2])
    assert part.value[0, 0] / part.error[0, 0] == pytest.approx(paired.statistic, rel=0.06)
    assert part.freedom[0, 0] == n - 1
    assert judge([part])[0].found[0, 0]


def test_pictures_of_one_person_count_once(rng):
    people = People(np.repeat(np.arange(20), 4))
    groups = Groups("g", ["a", "b"], np.repeat([0, 1], 40))
    values = np.repeat(rng.normal(size=20), 4)
    once = compare_groups(values[::4], Groups("g", ["a", "b"], np.repeat([0, 1], 10)), People(np.arange(20)), rng)
    part = compare_groups(values, groups, people, rng)
    np.testing.assert_allclose([part.value, part.error], [once.value, once.error])


def test_columns_that_lack_people_are_compared_among_the_others(rng):
    groups, people = two_groups(20, 20)
    values = rng.normal(size=(40, 3))
    values[3, 1] = np.nan
    part = compare_groups(values, groups, people, rng, shuffles=199)
    alone = compare_groups(np.delete(values[:, 1], 3), *two_groups(19, 20), rng, shuffles=199)
    assert part.value[0, 1] == pytest.approx(alone.value[0, 0])
    assert part.people[0].tolist() == [20, 19, 20]


def test_a_difference_is_found_just_where_its_bounds_leave_out_0(rng):
    groups, people = two_groups(15, 25)
    values = rng.normal(size=(40, 60)) + np.linspace(0, 2, 60) * (groups.codes == 0)[:, None]
    (judged,) = judge([compare_groups(values, groups, people, rng, shuffles=499)])
    np.testing.assert_array_equal(judged.found, (judged.low > 0) | (judged.high < 0))
    assert judged.found.any()
    assert not judged.found.all()


def test_a_comparison_says_the_value_of_each_group_and_how_it_was_judged(rng):
    groups, people = two_groups(20, 30)
    values = rng.normal(size=(50, 2))
    values[3, 1] = np.nan
    (judged,) = judge([compare_groups(values, groups, people, rng, shuffles=499)])
    for column in (0, 1):
        found = comparison_at(judged, (0, column), "woman", "man").swapped()
        assert found.sides == pytest.approx((values[20:, column].mean(), np.nanmean(values[:20, column])))
        assert found.low < found.own[0] < found.value < found.own[1] < found.high
        assert found.method == "499 shuffles of people; the largest of 2 studentised numbers"


def test_a_family_of_several_parts_is_judged_together(rng):
    groups, people = two_groups(20, 20)
    parts = [compare_groups(rng.normal(size=(40, 8)), groups, people, rng, shuffles=499) for _ in range(3)]
    alone, together = judge(parts[:1])[0], judge(parts)[0]
    assert (together.p_value >= alone.p_value - 1e-12).all()


def test_labels_that_are_the_groups_cannot_be_taken_off():
    table = pl.DataFrame({"gender": ["w"] * 10 + ["m"] * 10, "title": ["Ms"] * 10 + ["Mr"] * 10})
    strata = strata_of(table, group_by(table, ("gender",)), ["title"], People(np.arange(20)))
    assert strata.coincide == ("title",)
    assert strata.variant is None
    assert strata.note == "gender and title cannot be distinguished here"


def test_thin_crossings_are_taken_off_additively(rng):
    n = 60
    table = pl.DataFrame({name: rng.choice(list("abcde"), n) for name in ("race", "age", "tone")})
    table = table.with_columns(gender=pl.Series(rng.choice(["w", "m"], n)))
    groups, people = group_by(table, ("gender",)), People(np.arange(n))
    strata = strata_of(table, groups, ["race", "age", "tone"], people)
    assert strata.design.shape == (n, 12)
    values = rng.normal(size=n)
    part = compare_groups(values, groups, people, rng, strata=strata, shuffles=99)
    design = np.column_stack([np.ones(n), groups.codes == 0, strata.design])
    assert part.value[0, 0] == pytest.approx(np.linalg.lstsq(design, values, rcond=None)[0][1])


def test_cells_of_two_people_are_too_thin():
    table = pl.DataFrame({"g": ["w", "m"] * 60, "s": [f"{k // 2 % 10}" for k in range(120)]})
    table = table.with_columns(t=pl.Series([f"{k // 20}" for k in range(120)]))
    groups, people = group_by(table, ("g",)), People(np.arange(120))
    assert strata_of(table, groups, ["s", "t"], people).design.shape == (120, 9 + 5)
    assert strata_of(table, groups, ["s"], people).design.shape == (120, 0)


def test_a_null_is_put_on_its_own_scale_and_is_never_narrower_than_a_normal_one(rng):
    null = np.abs(rng.normal(size=(499, 3, 2)) * np.array([0.2, 1.0, 4.0])[:, None])
    scale, largest = largest_of(null, null[0], exact=True)
    tails = np.array([0.9, 0.95, 0.99])
    own = (np.quantile(null, tails, axis=0) / stats.norm.ppf((1 + tails) / 2)[:, None, None]).max(axis=0)
    np.testing.assert_allclose(scale, np.maximum(own, 1.0))
    ranks = stats.rankdata(null, axis=0, method="ordinal")
    normal = stats.norm.ppf(0.5 + (ranks - 0.5) / (2 * 499))
    np.testing.assert_allclose(largest, np.maximum(null / scale, normal).max(axis=(1, 2)))


def test_departures_are_what_a_sum_of_attributes_leaves_of_each_cell(rng):
    n = 120
    table = pl.DataFrame({"g": rng.choice(list("ab"), n), "r": rng.choice(list("xyz"), n)})
    cells, people = group_by(table, ("g", "r")), People(np.arange(n))
    strata = additive_strata(table, cells, ["g", "r"])
    values = rng.normal(size=(n, 2)) + 2 * (table["g"] == "a").to_numpy()[:, None]
    part = compare_groups(values, cells, people, rng, strata=strata, departures=True, shuffles=199)
    design = np.column_stack([np.ones(n), strata.design])
    left = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    for cell in range(6):
        np.testing.assert_allclose(part.value[cell], left[cells.codes == cell].mean(axis=0))
    assert not judge([part])[0].found.any()
    values[cells.codes == 2] += 1.5
    assert judge([compare_groups(values, cells, people, rng, strata=strata, departures=True)])[0].found[2].all()


@pytest.mark.parametrize("design", ["plain", "cells", "additive"])
def test_moving_values_gives_the_sums_of_moving_groups(design, rng):
    from beholder.comparison.groups import no_strata
    from beholder.comparison.means import _Fit, _Moves, units_of

    n = 60
    table = pl.DataFrame({"g": rng.choice(list("abcdef"), n), "s": np.repeat(["x", "y", "z"], n // 3)})
    groups, people = group_by(table, ("g",)), People(np.arange(n))
    strata = {"plain": no_strata(n), "additive": additive_strata(table, groups, ["s"])}
    strata["cells"] = no_strata(n)._replace(cells=group_by(table, ("s",)).codes)
    units = units_of(rng.normal(size=(n, 2)), groups, people, strata[design])
    fit = _Fit(units, 6)
    left = fit.residuals(units.values)
    move = _Moves(fit.member, fit.weights, left, fit.stretched(left))
    some = next(Shuffles(units.groups, units.blocks, rng, 7).parts())
    own, powers = move._groups_moved(some)
    again, same = move._values_moved(some)
    np.testing.assert_allclose(own, again, atol=1e-12)
    np.testing.assert_allclose(powers, same, atol=1e-12)
    if design != "additive":  # within cells, sums are all that the means need
        sums = _Moves(fit.member, None, left, fit.stretched(left))._groups_moved(some)[0]
        np.testing.assert_allclose(own, fit.spread @ sums, atol=1e-12)


def test_a_ratio_leaves_out_1_just_where_the_difference_leaves_out_0(rng):
    groups, people = two_groups(20, 30)
    values = rng.gamma(2, 0.2, size=(50, 40)) * np.where(groups.codes == 0, 1, 1)[:, None]
    values[:20] *= np.linspace(0.3, 1.6, 40)
    part = compare_groups(values, groups, people, rng, shuffles=499)
    (judged,) = judge([part])
    levels = levels_of(values, groups, people)
    low, high = ratio_bounds(levels, judged, part)
    np.testing.assert_allclose(levels.first / levels.second, values[:20].mean(0) / values[20:].mean(0))
    np.testing.assert_array_equal(judged.found[0], (low > 1) | (high < 1))


def test_a_ratio_over_a_group_of_zeros_is_open_ended_and_has_a_lower_bound(rng):
    groups, people = two_groups(30, 30)
    values = np.where(groups.codes == 0, 22026.0, 0.0)[:, None]
    part = compare_groups(values, groups, people, rng, shuffles=299)
    (low,), (high,) = ratio_bounds(levels_of(values, groups, people), judge([part])[0], part)
    assert 1 < low < 100
    assert high == OPEN


def test_a_slope_within_strata_is_the_partial_one(rng):
    """The score follows the branch, and the number does too: within branches there is no slope."""
    branch = np.repeat([0, 1], 30)
    x, table = rng.normal(size=60) + 2 * branch, pl.DataFrame({"branch": branch.astype(str), "half": ["a", "b"] * 30})
    y = 3.0 * branch + rng.normal(size=60)
    groups, people = group_by(table, ("half",)), People(np.arange(60))
    strata = strata_of(table, groups, ["branch"], people)
    plain, within = (compare_slopes(y, x, people, rng, strata=each, shuffles=199) for each in (None, strata))
    full = np.column_stack([np.ones(60), branch, x])
    assert within.value[0, 0] == pytest.approx(np.linalg.lstsq(full, y, rcond=None)[0][2])
    assert [bool(each.found[0, 0]) for part in (plain, within) for each in judge([part])] == [True, False]


def test_a_slope_is_least_squares_with_whites_error(rng):
    x, people = rng.integers(20, 60, 50).astype(float), People(np.arange(50))
    y = 0.02 * x + rng.normal(size=50) * 0.1
    part = compare_slopes(y[:, None], x, people, rng, shuffles=199)
    assert part.value[0, 0] == pytest.approx(stats.linregress(x, y).slope)
    assert judge([part])[0].found[0, 0]


def test_belief_in_a_word_for_everyone_is_no_recognition(rng):
    answers, blocks = rng.integers(0, 5, 40), np.zeros(40, int)
    constant = np.tile([0.9, 0.3, 0.2, 0.1, 0.05], (40, 1))
    assert not judge([exchanged(constant, answers, blocks, rng).part])[0].found[0]
    assert judge([exchanged(0.2 * np.eye(5)[answers] + constant, answers, blocks, rng).part])[0].found[0]
    assert exchanged(constant, np.zeros(40, int), blocks, rng) is None


def test_all_arrangements_are_equally_likely_and_each_comes_once():
    labels, blocks = np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    moves = Shuffles(labels, blocks, np.random.default_rng(0))
    made = np.concatenate(list(moves.parts()))
    assert arrangements(labels, blocks) == 12 == len(made) == len(np.unique(labels[made], axis=0))
    assert (labels[made[0]] == labels).all()


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(30, 30), (5, 40), (8, 72)])
@pytest.mark.parametrize("world", ["normal", "cauchy", "two levels", "small group twice as wide", "saturated"])
def test_worlds_without_effect_are_seldom_called(world, sizes, rng):
    called, groups, people = 0, *two_groups(*sizes)
    for _ in range(120):
        values = rng.normal(size=(sum(sizes), 4))
        if world == "cauchy":
            values = rng.standard_cauchy(size=values.shape)
        elif world == "two levels":
            values = (values > 0.8).astype(float)
        elif world == "small group twice as wide":
            values[: sizes[0]] *= 2
        elif world == "saturated":
            values = 1 / (1 + np.exp(-8 * values))
        called += judge([compare_groups(values, groups, people, rng, shuffles=199)])[0].found.any()
    assert called <= stats.binom.ppf(0.999, 120, 0.06)


def test_any_number_can_be_judged_by_its_own_null(rng):
    null = rng.normal(size=(999, 3))
    (judged,) = judge([part_from_null(np.array([5.0, 0.1, -0.2]), null, people=30)])
    assert judged.found.tolist() == [True, False, False]


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "pictures"), [((30, 30), 1), ((8, 72), 1), ((20, 20), 4)])
def test_a_planned_difference_is_found_as_often_as_promised(sizes, pictures, rng):
    groups = Groups("g", ["a", "b"], np.repeat(np.repeat([0, 1], sizes), pictures))
    people = People(np.repeat(np.arange(sum(sizes)), pictures))
    (size,) = detectable([Design(groups, columns=5)], people, rng)
    draw, hits = noise_of(people), 0
    for _ in range(150):
        values = draw(5, rng)
        values[groups.codes == 0, 0] += size
        hits += judge([compare_groups(values, groups, people, rng, shuffles=399)])[0].found[0, 0]
    assert 0.68 <= hits / 150 <= 0.92


def test_shuffled_groups_move_people_with_all_their_pictures_within_their_stratum(rng):
    people, person = People(np.repeat(np.arange(40), 3)), np.repeat(np.arange(40), 3)
    groups, stratum = Groups("g", ["a", "b"], (person % 4 > 0).astype(int)), person % 2
    strata = strata_of(pl.DataFrame({"s": stratum}), groups, ["s"], people)
    made = np.concatenate(list(ShuffledGroups(groups, people, rng, strata, 50).parts()))
    assert made.shape == (50, 120)
    assert (made.reshape(50, 40, 3) == made.reshape(50, 40, 3)[:, :, :1]).all()
    assert ((made == 0)[:, stratum == 0].sum(axis=1) == 30).all()
    assert (made != groups.codes).any()


def test_someone_shown_in_both_groups_changes_them_with_themselves(rng):
    people, groups = People(np.tile(np.arange(10), 2)), Groups("g", ["a", "b"], np.repeat([0, 1], 10))
    made = np.concatenate(list(ShuffledGroups(groups, people, rng, None, 2000).parts()))
    assert len(made) == 1024
    assert (made[:, :10] != made[:, 10:]).all()


def test_a_few_skewed_scores_of_wider_spread_are_no_difference(rng):
    """Shares of five options: equal means, and twice the spread for eight people; by Welch's errors 14 % are called."""
    groups, people = two_groups(8, 22)
    called = 0
    for _ in range(150):
        logits = rng.normal(size=(30, 5)) * np.repeat([2.0, 1.0], [8, 22])[:, None]
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        called += judge([compare_groups(shares[:, :4], groups, people, rng, shuffles=199)])[0].found.any()
    assert called <= 12
