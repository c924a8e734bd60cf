"""Equivalence: "no bias larger than δ" as a verdict of its own, for absence of significance is not absence of bias.

Two one-sided tests (Schuirmann 1987): the difference is shown to lie above −δ, and shown to lie below δ. Pure
functions. δ is in the unit of the number; for a ratio it is a factor, from 1 / (1 + δ) to 1 + δ.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from beholder.metrics.group_tests import Moments
from beholder.metrics.intervals import Estimate, studentised_interval, studentised_tails

Array = npt.NDArray[np.float64]
ALPHA = 0.05
DIFFERENCE, EQUIVALENT, SMALL, UNDECIDED = "difference", "equivalent", "difference below δ", "undecided"
VERDICTS = {
    DIFFERENCE: "a difference is shown, and not shown to be smaller than δ",
    SMALL: "a difference is shown, and shown to be smaller than δ",
    EQUIVALENT: "shown to be smaller than δ; none is shown to be there",
    UNDECIDED: "neither is shown: too few images to say",
}


class Equivalence(NamedTuple):
    """p of the two one-sided tests, and the smallest δ that would be shown at 5 %."""

    p_value: Array
    bound: Array


def welch_equivalence(moments: Moments, delta: float) -> Equivalence:
    """Are all groups within δ of each other, in every column? The worst pair decides, so no correction is needed.

    The bound is the largest over pairs of |difference| + t · error (Welch's degrees of freedom).
    """
    share = moments.variance / moments.size
    worst, bound = np.zeros(moments.mean.shape[1]), np.zeros(moments.mean.shape[1])
    for i, j in combinations(range(len(moments.groups)), 2):
        difference, squared = moments.mean[i] - moments.mean[j], share[i] + share[j]
        with np.errstate(divide="ignore", invalid="ignore"):
            df = squared**2 / (share[i] ** 2 / (moments.size[i] - 1) + share[j] ** 2 / (moments.size[j] - 1))
            error = np.sqrt(squared)
            away = (delta - np.abs(difference)) / error
        worst = np.maximum(worst, special.stdtr(df, -away))
        bound = np.maximum(bound, np.abs(difference) + special.stdtrit(df, 1 - ALPHA) * error)
    return Equivalence(worst, bound)


def ratio_equivalence(estimate: Estimate, delta: float) -> Equivalence:
    """Is a ratio between 1 / (1 + δ) and 1 + δ? From its studentised draws on the log scale; the bound is a δ too."""
    above = studentised_tails(estimate, 1 / (1 + delta), scale="log").above
    below = studentised_tails(estimate, 1 + delta, scale="log").below
    low, high = studentised_interval(estimate, 1 - 2 * ALPHA, scale="log")
    return Equivalence(np.array(max(above, below)), np.array(max(high, 1 / low) - 1 if low > 0 else np.inf))


def verdict(p_difference: float | None, p_equivalence: float | None) -> str:
    """Which of four things is shown at 5 %; a test that could not be made shows nothing.

    >>> verdict(0.4, 0.01), verdict(0.001, 0.02), verdict(0.4, 0.3)
    ('equivalent', 'difference below δ', 'undecided')
    """
    differs, same = (p is not None and p <= ALPHA for p in (p_difference, p_equivalence))
    if differs:
        return SMALL if same else DIFFERENCE
    return EQUIVALENT if same else UNDECIDED
