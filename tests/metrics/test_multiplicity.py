"""Corrections for many tests, against scipy and against the definitions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import false_discovery_control

from beholder.metrics.group_tests import benjamini_hochberg, simes

P_VALUES = arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1))


@given(P_VALUES)
def test_benjamini_hochberg_agrees_with_scipy(p_values):
    np.testing.assert_allclose(benjamini_hochberg(p_values), false_discovery_control(p_values), atol=1e-12)


@given(P_VALUES)
def test_simes_equals_its_definition(p_values):
    ordered, m = np.sort(p_values), len(p_values)
    np.testing.assert_allclose(simes(p_values), min(m * p / (i + 1) for i, p in enumerate(ordered)), atol=1e-12)


def test_a_missing_test_stays_missing_and_does_not_count():
    p_values = np.array([0.01, np.nan, 0.02])
    found = benjamini_hochberg(p_values)
    assert np.isnan(found[1])
    np.testing.assert_allclose(found[[0, 2]], benjamini_hochberg(p_values[[0, 2]]))
    assert simes(p_values) == simes(p_values[[0, 2]])
    assert np.isnan(simes(np.array([np.nan])))


def test_corrections_work_row_by_row():
    table = np.random.default_rng(0).random((3, 7))
    np.testing.assert_allclose(benjamini_hochberg(table)[1], benjamini_hochberg(table[1]))
    np.testing.assert_allclose(simes(table)[2], simes(table[2]))
