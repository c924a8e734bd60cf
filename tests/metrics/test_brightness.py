"""Brightness maps: mean signs, and coarse pictures that keep the mean."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.metrics.association import coarse, sign_map


def test_signs_are_averaged_over_pairs_whatever_their_size():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 9, 4, 5))
    expected = [
        [np.mean([np.sign(a - b) for a, b in zip(first[:, y, x], second[:, y, x], strict=True)]) for x in range(5)]
        for y in range(4)
    ]
    np.testing.assert_allclose(sign_map(first, second), expected)


def test_coarse_squares_are_means_of_blocks():
    grey = np.arange(36.0).reshape(6, 6)
    assert coarse(grey, 3)[0, 1] == pytest.approx(grey[:2, 2:4].mean())
    assert coarse(np.ones((7, 9)), 3).shape == coarse(np.ones((9, 7)), 3).shape == (3, 3)
