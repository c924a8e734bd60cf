"""Trials of the ratio measure what the study measures."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.studies.public_figures.trials import bias_rows


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_ratio_of_the_benchmark_is_that_of_the_beliefs():
    beliefs = rng().uniform(0.1, 0.9, 50)
    (row,) = bias_rows({"a": beliefs}, 20, rng())
    assert row.value == pytest.approx(beliefs[:20].mean() / beliefs[20:].mean())


def test_alike_women_and_men_have_a_ratio_near_one_inside_its_interval():
    (row,) = bias_rows({"a": rng().uniform(0.4, 0.6, 200)}, 100, rng())
    assert row.value == pytest.approx(1.0, abs=0.05)
    assert row.low is not None
    assert row.low < 1.0 < (row.high or 0.0)
