"""Variance: how much of the spread of a score goes with each attribute.

Least squares on the levels of all attributes at once. An attribute's share is what the fit loses without it, less what
chance gives (omega squared): 0 none, 1 all; it may fall below 0. In a balanced design the shares add up; elsewhere what
attributes have in common belongs to none of them. Pure functions for many columns at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Shares(NamedTuple):
    """Of every attribute (rows) and column the share of variance, and what is left over."""

    names: list[str]
    share: Array
    rest: Array


def variance_shares(values: npt.NDArray[Any], factors: Mapping[str, npt.NDArray[Any]]) -> Shares | None:
    """Shares of each factor in every column of `values`; None where no factor varies or too few rows are there."""
    values = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    levels = {name: _levels(labels) for name, labels in factors.items()}
    levels = {name: columns for name, columns in levels.items() if columns.shape[1]}
    total = ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    left, rank = _residual(values, list(levels.values()))
    free = len(values) - rank
    if not levels or free < 1:
        return None
    error, shares = left / free, []
    for name in levels:
        without, smaller = _residual(values, [columns for other, columns in levels.items() if other != name])
        with np.errstate(divide="ignore", invalid="ignore"):
            shares.append((without - left - (rank - smaller) * error) / (total + error))
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = free * error / total
    return Shares(list(levels), np.array(shares), rest)


def _levels(labels: npt.NDArray[Any]) -> Array:
    """A column for every level but the first."""
    _, codes = np.unique(labels, return_inverse=True)
    return np.asarray(codes[:, None] == np.arange(1, codes.max(initial=0) + 1), dtype=np.float64)


def _residual(values: Array, columns: list[Array]) -> tuple[Array, int]:
    """Sum of squares that is left, and the rank of the fit."""
    fit = np.concatenate([np.ones((len(values), 1)), *columns], axis=1)
    solution, _, rank, _ = np.linalg.lstsq(fit, values, rcond=None)
    return np.asarray(((values - fit @ solution) ** 2).sum(axis=0)), int(rank)


# Partial pooling


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
