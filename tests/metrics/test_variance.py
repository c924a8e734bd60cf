"""Shares of variance: equal to analysis of variance, additive in a balanced design, near 0 by chance."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from beholder.metrics.group_tests import group_moments, omega_squared
from beholder.metrics.person_shuffles import PersonShuffles
from beholder.metrics.variance import People, variance_shares


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_one_factor_is_one_way_analysis_of_variance():
    values, labels = rng().normal(size=(50, 2)), np.array(list("aabbc") * 10)
    found = variance_shares(values, {"letter": labels})
    np.testing.assert_allclose(found.share[0], omega_squared(group_moments(values, labels, ["a", "b", "c"])))
    for column in range(2):
        groups = [values[labels == letter, column] for letter in "abc"]
        assert found.p_value[0, column] == pytest.approx(stats.f_oneway(*groups).pvalue)


def test_in_a_balanced_design_shares_and_rest_add_up_but_for_chance():
    cells = np.array(list(product(range(3), range(4), range(25))))
    score = cells[:, 0] * 1.0 + cells[:, 1] * 0.5 + rng().normal(size=len(cells)) * 0.3
    found = variance_shares(score, {"a": cells[:, 0], "b": cells[:, 1]})
    planted = np.array([np.var([0, 1, 2]), np.var([0, 0.5, 1, 1.5]), 0.09])
    np.testing.assert_allclose([*found.share[:, 0], found.rest[0]], planted / planted.sum(), atol=0.02)


def test_what_two_attributes_share_belongs_to_neither():
    a = rng(2).integers(2, size=400)
    b = np.where(rng(3).random(400) < 0.95, a, 1 - a)
    found = variance_shares(a + rng(4).normal(size=400) * 0.1, {"a": a, "b": b})
    assert found.share[0, 0] < 0.3
    assert abs(found.share[1, 0]) < 0.01


def test_shares_without_effect_are_near_zero_and_their_p_values_even():
    labels = {"a": np.arange(120) % 3, "b": np.arange(120) // 3 % 4}
    found = variance_shares(rng(5).normal(size=(120, 400)), labels)
    assert abs(found.share.mean()) < 0.005
    assert 0.03 < (found.p_value < 0.05).mean() < 0.07


def test_one_group_only_has_no_decomposition():
    assert variance_shares(rng().normal(size=9), {"a": np.zeros(9)}) is None


def drawn_people(seed: int, *, crossed: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores without a difference between three groups; people have several images in each of theirs."""
    draw = rng(seed)
    blocks = (
        np.array(list(product(range(12), range(3)))) if crossed else np.stack([np.arange(36), np.arange(36) % 3], 1)
    )
    images = np.repeat(np.arange(36), 4)
    scores = draw.normal(size=(36, 2))[images] + 0.3 * draw.normal(size=(144, 2))
    return scores, blocks[images, 1], blocks[images, 0]


@pytest.mark.parametrize("crossed", [False, True])
def test_people_with_several_images_raise_no_more_alarms(crossed: bool):
    alarms = naive = 0
    for seed in range(80):
        scores, groups, person = drawn_people(seed, crossed=crossed)
        other = np.arange(144) % 4
        people = People(person, 99, rng(seed + 1000))
        alarms += (variance_shares(scores, {"g": groups, "o": other}, people).p_value[0] <= 0.05).sum()
        naive += (variance_shares(scores, {"g": groups, "o": other}).p_value[0] <= 0.05).sum()
    assert alarms <= 17  # 8 of 160 expected
    assert naive > 45


def test_shuffles_count_the_gain_of_ordinary_fits():
    scores, groups, person = drawn_people(3, crossed=True)
    other = rng(7).integers(3, size=144)
    shuffles = PersonShuffles(groups, person)
    losses = [_fit_loss(scores, {"o": other, "g": part[shuffles.block_of]}) for part in shuffles.blocks(99, rng(1))]
    as_far = (np.array(losses) <= _fit_loss(scores, {"o": other, "g": groups}) * (1 + 1e-9)).sum(axis=0)
    found = variance_shares(scores, {"g": groups, "o": other}, People(person, 99, rng(1)))
    np.testing.assert_allclose(found.p_value[0], (as_far + 1) / 100)


def _fit_loss(values: np.ndarray, factors: dict[str, np.ndarray]) -> np.ndarray:
    columns = [np.ones((len(values), 1)), *((f[:, None] == np.unique(f)[1:]).astype(float) for f in factors.values())]
    design = np.concatenate(columns, axis=1)
    return ((values - design @ np.linalg.lstsq(design, values, rcond=None)[0]) ** 2).sum(axis=0)


def test_who_is_shown_keeps_the_f_test():
    scores, _, person = drawn_people(4, crossed=True)
    found = variance_shares(scores, {"seed": person}, People(person, 99, rng(1)))
    np.testing.assert_allclose(found.p_value, variance_shares(scores, {"seed": person}).p_value)
    assert not found.at_most.any()
