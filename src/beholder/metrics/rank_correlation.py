"""Rank correlation, as it stands and in every draw: do two numbers about the same people rise together?

Spearman's, from −1 (one falls where the other rises) over 0 to 1. With `blocks` it is the partial one: what goes
together only because whole blocks differ is taken out. Pure functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from beholder.metrics.bootstrap import Resampler

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
ALIKE = 1e-9
"""Squares of ranks below which all are alike: any two that differ lie half a rank apart at least."""


def rank_correlation(first: Array, second: Array, blocks: Codes | None = None) -> float:
    """Spearman's correlation; NaN where either is all alike.

    >>> rank_correlation(np.array([1.0, 2.0, 9.0]), np.array([0.3, 0.1, 0.0]))
    -1.0
    """
    return float(_correlations(first, second, np.ones((1, len(first))), blocks)[0])


def rank_correlation_draws(first: Array, second: Array, resampler: Resampler, blocks: Codes | None = None) -> Array:
    """The same in every draw, ranked anew."""
    return np.concatenate([_correlations(first, second, part, blocks) for part in resampler.weights()])


def _correlations(first: Array, second: Array, weights: Array, blocks: Codes | None) -> Array:
    belongs = _membership(np.zeros(len(first), dtype=int) if blocks is None else blocks)
    one, other = (_centred(_midranks(each, weights), weights, belongs) for each in (first, second))
    spreads = [(weights * each**2).sum(axis=1) for each in (one, other)]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (weights * one * other).sum(axis=1) / np.sqrt(spreads[0] * spreads[1])
    return np.where(np.minimum(*spreads) > ALIKE, np.clip(found, -1.0, 1.0), np.nan)


def _midranks(values: Array, weights: Array) -> Array:
    """Ranks in each draw, where a person drawn twice stands there twice; ties share the mean of their ranks."""
    codes = np.unique(values, return_inverse=True)[1]
    counts = weights @ _membership(codes)
    return np.asarray((counts.cumsum(axis=1) - (counts - 1) / 2)[:, codes])


def _centred(ranks: Array, weights: Array, belongs: Array) -> Array:
    """What is left of ranks without their block's mean."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = ((weights * ranks) @ belongs) / (weights @ belongs)
    return np.asarray(ranks - np.nan_to_num(means) @ belongs.T)


def _membership(codes: Codes) -> Array:
    """`[n, n_codes]`: 1 where an entry has that code."""
    return np.asarray((codes[:, None] == np.unique(codes)).astype(np.float64))
