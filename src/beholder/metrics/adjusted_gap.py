"""How far two groups lie apart, as they are and at equal covariates, as it stands and in every draw.

Least squares of the value on membership, the covariates and a level for each block: the coefficient of membership. In
the unit of the values; 0 means alike. Without covariates and with one block it is the difference of the means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from beholder.metrics.bootstrap import Resampler

Array = npt.NDArray[np.float64]


def adjusted_gap(values: Array, member: npt.NDArray[np.bool_], covariates: Array, blocks: npt.NDArray[Any]) -> float:
    """Members less the others, at equal `covariates[n, k]` within blocks.

    >>> adjusted_gap(np.array([1.0, 4.0, 3.0]), np.array([True, False, False]), np.empty((3, 0)), np.zeros(3))
    -2.5
    """
    return round(float(_gaps(values, _design(member, covariates, blocks), np.ones((1, len(values))))[0]), 12)


def adjusted_gap_draws(
    values: Array, member: npt.NDArray[np.bool_], covariates: Array, blocks: npt.NDArray[Any], resampler: Resampler
) -> Array:
    """The same in every draw."""
    design = _design(member, covariates, blocks)
    return np.concatenate([_gaps(values, design, weights) for weights in resampler.weights()])


def _design(member: npt.NDArray[np.bool_], covariates: Array, blocks: npt.NDArray[Any]) -> Array:
    """Membership first; covariates around their mean, so that none outweighs the rest in size."""
    spread = covariates.std(axis=0)
    even = (covariates - covariates.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.column_stack([member, even, blocks[:, None] == np.unique(blocks)]).astype(np.float64)


def _gaps(values: Array, design: Array, weights: Array) -> Array:
    """Normal equations of all draws at once; what a draw cannot tell apart is left out of it (pseudo-inverse)."""
    many = design.shape[1]
    products = (design[:, :, None] * design[:, None, :]).reshape(len(values), -1)
    squares = (weights @ products).reshape(-1, many, many)
    right = weights @ (design * values[:, None])
    solved = np.linalg.pinv(squares, rcond=1e-10, hermitian=True) @ right[:, :, None]
    return np.asarray(solved[:, 0, 0])
