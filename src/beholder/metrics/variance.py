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
