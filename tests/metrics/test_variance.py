"""Shares of variance: equal to analysis of variance, additive in a balanced design, near 0 by chance."""

from __future__ import annotations

from itertools import product

import numpy as np
from metrics.groups import group_moments

from beholder.metrics.clustered import variance_shares
from beholder.metrics.group_tests import omega_squared


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_one_factor_is_one_way_analysis_of_variance():
    values, labels = rng().normal(size=(50, 2)), np.array(list("aabbc") * 10)
    found = variance_shares(values, {"letter": labels})
    np.testing.assert_allclose(found.share[0], omega_squared(group_moments(values, labels, ["a", "b", "c"])))


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


def test_shares_without_effect_are_near_zero():
    labels = {"a": np.arange(120) % 3, "b": np.arange(120) // 3 % 4}
    found = variance_shares(rng(5).normal(size=(120, 400)), labels)
    assert abs(found.share.mean()) < 0.005


def test_one_group_only_has_no_decomposition():
    assert variance_shares(rng().normal(size=9), {"a": np.zeros(9)}) is None
