"""The p-values of Table S.2 are checked with the p of a correlation."""

from __future__ import annotations

import pytest
from perception_checks import correlation_p
from scipy import stats


def test_the_p_of_a_correlation_is_that_of_scipy():
    x, y = [1.0, 2, 3, 4, 5], [2.0, 1, 4, 3, 5]
    r, p = stats.pearsonr(x, y)
    assert correlation_p(r, 5) == pytest.approx(p)
