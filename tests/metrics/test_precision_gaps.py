"""Gaps, their intervals and their test, on rankings whose quality is known."""

from __future__ import annotations

import numpy as np
import pytest
from metrics.groups import average_precision
from scipy.stats import norm

from beholder.metrics.average_precision import LabelShuffles, measured, prevalences, resampled, shuffled
from beholder.metrics.intervals import Resampler, centred_interval

RNG = np.random.default_rng


def rankings(
    sizes: tuple[int, ...], shares: tuple[float, ...], *, quality=1.5, concepts: int = 1, seed: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, presence and groups: pictures that show a concept score `quality` deviations higher."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    present = rng.random((len(groups), concepts)) < np.array(shares)[groups][:, None]
    better = np.broadcast_to(quality, len(sizes))[groups][:, None]
    return rng.standard_normal(present.shape) + better * present, present, groups


def members(groups: np.ndarray) -> list[np.ndarray]:
    return [groups == group for group in range(groups.max() + 1)]


def test_every_concept_and_group_equals_the_loop():
    scores, present, groups = rankings((60, 80, 50), (0.2, 0.3, 0.5), concepts=4)
    scores[::7, 1] = np.nan
    found, common = measured(scores, present, members(groups)), prevalences(scores, present)
    for group in range(3):
        for concept in range(4):
            s, p = (table[groups == group, concept] for table in (scores, present))
            assert found.raw[group, concept] == pytest.approx(average_precision(s, p), abs=1e-12)
            expected = average_precision(s, p, prevalence=float(common[concept]))
            assert found.matched[group, concept] == pytest.approx(expected, abs=1e-12)


def test_draws_equal_the_loop_over_draws():
    scores, present, groups = rankings((40, 60), (0.3, 0.4), concepts=3)
    resampler = Resampler(np.arange(100), np.random.default_rng(5), 12, strata=groups)
    found, common = resampled(scores, present, members(groups), resampler), prevalences(scores, present)
    weights = np.concatenate(list(resampler.weights()))
    for place, draw in enumerate(weights):
        for group in range(2):
            mine = groups == group
            assert draw[mine].sum() == mine.sum()  # every draw has as many pictures of each group as there are
            for concept in range(3):
                s, p = scores[mine, concept], present[mine, concept]
                expected = (
                    average_precision(s, p, draw[mine]),
                    average_precision(s, p, draw[mine], prevalence=float(common[concept])),
                )
                got = found.raw[group, concept, place], found.matched[group, concept, place]
                np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.slow
def test_shuffled_labels_are_exchangeable_given_presence():
    """The mean over shuffles is the mean over a plain shuffle written out."""
    scores, present, groups = rankings((30, 30), (0.2, 0.5))
    ours = shuffled(scores, present, groups, np.random.default_rng(6), 4000)[0, 0]
    share, rng, loop = float(present.mean()), np.random.default_rng(7), []
    for _ in range(4000):
        labels = groups.copy()
        for part in (present[:, 0], ~present[:, 0]):
            labels[part] = rng.permutation(groups[part])
        sides = ((scores[labels == g, 0], present[labels == g, 0]) for g in (0, 1))
        loop.append(np.subtract(*(average_precision(*side, prevalence=share) for side in sides)))
    assert abs(ours.mean() - np.mean(loop)) < 6 * np.std(loop) / np.sqrt(4000)
    assert ours.std() == pytest.approx(np.std(loop), rel=0.1)


def test_a_picture_has_the_same_shuffled_label_in_all_concepts():
    """Two equal concepts have equal gaps in every shuffle, so their mean varies as much as one of them."""
    scores, present, groups = rankings((60, 40), (0.2, 0.5))
    (gaps,) = shuffled(*(np.repeat(table, 2, axis=1) for table in (scores, present)), groups, RNG(6), 50)
    np.testing.assert_array_equal(gaps[0], gaps[1])


def test_pictures_of_one_person_are_shuffled_together():
    """Ten pictures of each person, all alike: the gap varies as if there were one picture of each."""
    scores, present, groups = rankings((100, 100), (0.4, 0.4), seed=3)
    spreads = []
    for n, people in ((1, None), (10, np.repeat(np.arange(200), 10)), (10, None)):
        world = (np.repeat(each, n, axis=0) for each in (scores, present, groups))
        spreads.append(np.std(shuffled(*world, RNG(1), 400, people=people)))
    assert spreads[1] == pytest.approx(spreads[0], rel=0.15)
    assert spreads[2] < spreads[0] / 2


def test_people_move_with_all_their_pictures_and_only_among_those_who_show_a_concept_as_often():
    """Forty people with two to four pictures, of which they show a concept in none to all."""
    rng = np.random.default_rng(4)
    people = np.repeat(np.arange(40), rng.integers(2, 5, 40))
    group, shows = (np.arange(40) % 2)[people], rng.random(len(people)) < 0.5
    known = rng.random(len(people)) < 0.9
    moves = LabelShuffles(group, people)
    ((_, keys),) = moves.keys(rng, 50)
    labels = moves.labels(shows, known, keys)
    often, blocks = moves.blocks(shows, known)
    np.testing.assert_array_equal(often, np.bincount(people, weights=shows & known))
    first = np.unique(people, return_index=True)[1]
    for draw in labels.T:
        assert all(len(set(draw[people == person])) == 1 for person in range(40))
        for block in np.unique(blocks):
            mine = blocks == block
            assert draw[first][mine].sum() == group[first][mine].sum()
    assert (labels != group[:, None]).any(axis=1).mean() > 0.8


def test_people_move_within_cells_and_someone_shown_in_both_groups_only_with_themselves():
    people = np.array([0, 0, *range(1, 39)])
    groups, cells = np.arange(40) % 2, np.arange(40) // 20
    moves, shows = LabelShuffles(groups, people, cells), np.ones(40, dtype=bool)
    ((_, keys),) = moves.keys(np.random.default_rng(0), 200)
    labels = moves.labels(shows, shows, keys)
    assert (labels[:2].sum(axis=0) == 1).all()
    assert labels[0].mean() == pytest.approx(0.5, abs=0.15)
    for cell in (0, 1):
        assert (labels[cells == cell].sum(axis=0) == 10).all()


def test_three_groups_are_each_set_against_the_rest():
    scores, present, groups = rankings((300, 300, 300), (0.3, 0.3, 0.3), quality=[0.2, 1.5, 1.5])
    null = shuffled(scores, present, groups, np.random.default_rng(8), 300)[:, 0]
    found = measured(scores, present, [*members(groups), *(~mask for mask in members(groups))])
    gaps = found.matched[:3, 0] - found.matched[3:, 0]
    assert gaps[0] < -0.2
    assert gaps[0] < null[0].min()


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.01, 0.5), (0.3, 0.05)])
def test_matched_gaps_are_unbiased_where_raw_gaps_are_not(shares: tuple[float, float]):
    """Equal quality, unequal prevalence: 500 data sets, side by side as 500 concepts."""
    scores, present, groups = rankings((10_000, 10_000), shares, quality=2.5, concepts=500)
    found = measured(scores, present, members(groups))
    (null,) = shuffled(scores, present, groups, np.random.default_rng(9), 50)
    raw, gaps = (ap[0] - ap[1] for ap in found)
    gaps = gaps - null.mean(axis=1)
    assert abs(100 * gaps.mean()) < 0.2
    assert 100 * gaps.std() / np.sqrt(500) < 0.1  # or the line above would say nothing
    assert abs(100 * raw.mean()) > 10


@pytest.mark.slow
def test_few_positives_are_matched_too():
    """Ten pictures against sixty: average precision is too high for the ten, and the shuffles know by how much."""
    scores, present, groups = rankings((200, 200), (0.05, 0.3), concepts=6000)
    found = measured(scores, present, members(groups))
    (null,) = shuffled(scores, present, groups, np.random.default_rng(10), 50)
    plain = found.matched[0] - found.matched[1]
    gaps = plain - null.mean(axis=1)
    error = np.nanstd(gaps) / np.sqrt(6000)
    assert np.nanmean(plain) > 3 * error
    assert abs(np.nanmean(gaps)) < 3 * error


@pytest.mark.slow
def test_true_gaps_are_met_and_covered():
    """Unequal quality: the mean gap, and the share of intervals that hold it."""
    sizes, shares, concepts = (1500, 1500), (0.05, 0.2), 300
    scores, present, groups = rankings(sizes, shares, quality=[1.5, 1.15], concepts=concepts, seed=11)
    common = 0.125
    grid = np.linspace(-6, 9, 200_001)  # scores from low to high; above them pass the tails of two normal curves
    truth = []
    for quality in (1.5, 1.15):
        hit, miss = common * norm.sf(grid - quality), (1 - common) * norm.sf(grid)
        truth.append(np.trapezoid(hit / (hit + miss) * norm.pdf(grid - quality), grid))
    found = measured(scores, present, members(groups))
    (null,) = shuffled(scores, present, groups, np.random.default_rng(12), 200)
    gaps = found.matched[0] - found.matched[1] - null.mean(axis=1)
    draws = resampled(
        scores, present, members(groups), Resampler(np.arange(3000), np.random.default_rng(13), 300, strata=groups)
    ).matched
    inside = [
        low < truth[0] - truth[1] < high
        for low, high in (centred_interval(draws[0, j] - draws[1, j], gaps[j]) for j in range(concepts))
    ]
    assert gaps.mean() == pytest.approx(truth[0] - truth[1], abs=4 * gaps.std() / np.sqrt(concepts))
    assert 0.91 < np.mean(inside) < 0.985
