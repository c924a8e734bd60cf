"""A headline survives the number of chances it had; noise gets none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from beholder.chapter.family_correction import log, p_from_interval, surviving
from beholder.metrics.multiplicity import holm


def row(value: float, low: float | None, high: float | None) -> dict[str, float | None]:
    return {"value": value, "low": low, "high": high}


def test_p_of_an_even_interval_is_that_of_its_z():
    for z in (0.5, 1.0, 1.96, 3.3):
        assert p_from_interval(z, z - norm.isf(0.025), 0.0) == pytest.approx(2 * norm.sf(z))


def test_what_survives_is_what_holm_keeps():
    rng = np.random.default_rng(3)
    centres = rng.normal(0, 2.5, 40)
    rows = [row(c, c - norm.isf(0.025), c + norm.isf(0.025)) for c in centres]
    kept = [each["value"] for each in surviving(rows, lambda _: 0.0)]
    wanted = centres[holm(2 * norm.sf(np.abs(centres))) <= 0.05]
    assert 0 < len(wanted) < 40
    assert kept == wanted.tolist()


def test_one_interval_alone_is_taken_as_it_is():
    assert surviving([row(0.8, 0.65, 0.99)], lambda _: 1.0, log)
    assert not surviving([row(0.8, 0.65, 1.01)], lambda _: 1.0, log)


def test_a_barely_excluding_interval_among_several_does_not_survive():
    many = [row(0.79, 0.57, 0.99), row(1.0, 0.8, 1.2), row(0.9, 0.6, 1.3)]
    assert surviving(many, lambda _: 1.0, log) == []
    assert surviving([*many, row(0.5, 0.4, 0.6)], lambda _: 1.0, log) == [row(0.5, 0.4, 0.6)]


def test_without_an_interval_or_a_landmark_nothing_survives():
    assert surviving([row(0.5, None, None), row(0.5, 0.5, 0.5)], lambda _: 1.0) == []
    assert surviving([row(0.5, 0.4, 0.6)], lambda _: None) == []
    assert surviving([], lambda _: 1.0) == []


def test_a_ratio_of_zero_is_off_as_far_as_its_interval_says():
    assert surviving([row(0.0, 0.0, 0.4)], lambda _: 1.0, log)
    assert not surviving([row(0.0, 0.0, 1.4)], lambda _: 1.0, log)
