"""Partial pooling: small groups borrow from all, so that a cell of five images does not shout.

Empirical Bayes for means: each group's mean is drawn towards the overall mean by as much as its error outweighs the
true spread between groups. Pure functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Pooled(NamedTuple):
    """Pooled means with their standard errors, and the spread between groups that was found."""

    mean: Array
    error: Array
    overall: float
    spread: float
    """Standard deviation of the true group means: 0 means that groups differ by no more than their errors."""


def partial_pooling(means: Array, errors: Array, *, steps: int = 100) -> Pooled:
    """Pooled means of groups with known standard errors; the spread by Paule and Mandel's equation.

    >>> pooled = partial_pooling(np.array([0.0, 1.0]), np.array([10.0, 10.0]))
    >>> pooled.spread, pooled.mean.tolist()
    (0.0, [0.5, 0.5])
    """
    low, high = 0.0, max(float(np.var(means)) * len(means), 1e-12)
    if _heterogeneity(means, errors, 0.0) <= len(means) - 1:
        variance = 0.0
    else:
        for _ in range(steps):
            variance = (low + high) / 2
            too_small = _heterogeneity(means, errors, variance) > len(means) - 1
            low, high = (variance, high) if too_small else (low, variance)
        variance = (low + high) / 2
    weight = 1 / (errors**2 + variance)
    overall = float((weight * means).sum() / weight.sum())
    own = variance / (variance + errors**2)
    # The error of a pooled mean: what is left of its own, its share of the overall mean's, and, after Morris (1983),
    # what comes of not knowing the spread.
    unknown_spread = 2 / max(len(means) - 3, 1) * ((1 - own) * (means - overall)) ** 2
    error = np.sqrt(own * errors**2 + (1 - own) ** 2 / weight.sum() + unknown_spread)
    return Pooled(own * means + (1 - own) * overall, error, overall, float(np.sqrt(variance)))


def _heterogeneity(means: Array, errors: Array, variance: float) -> float:
    weight = 1 / (errors**2 + variance)
    centre = (weight * means).sum() / weight.sum()
    return float((weight * (means - centre) ** 2).sum())
