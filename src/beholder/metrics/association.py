"""Association: how much of a model's belief falls on the right prompt, name or picture.

Pure functions: arrays in, arrays out. No files, no models, no randomness. Probabilities are shares of belief among
the options offered: 1 means all of it, 1/n means as much as a model that knows nothing gives to each of n options.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import comb

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def softmax(logits: npt.NDArray[Any], axis: int = 1) -> Array:
    """Shares of belief along `axis`, in float64; each row (or column) adds up to 1.

    >>> softmax(np.zeros((1, 4)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    logits = np.asarray(logits, dtype=np.float64)
    powers = np.exp(logits - logits.max(axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


def correct_share(shares: Array, correct: Mask) -> Array:
    """Each row's share on its correct options (0 to 1); NaN for a row that has none.

    >>> correct_share(np.array([[0.2, 0.8]]), np.array([[False, True]]))
    array([0.8])
    """
    total = np.where(correct, shares, 0.0).sum(axis=1)
    return np.where(correct.any(axis=1), total, np.nan)


def correct_rank(scores: npt.NDArray[Any], correct: Mask) -> Array:
    """Rank of each row's best correct option: 1 is first; ties count half; NaN for a row that has none.

    >>> correct_rank(np.array([[0.1, 0.9, 0.5]]), np.array([[True, False, False]]))
    array([3.])
    """
    best = np.where(correct, scores, -np.inf).max(axis=1, keepdims=True)
    above = ((scores > best) & ~correct).sum(axis=1)
    level = ((scores == best) & ~correct).sum(axis=1)
    return np.where(correct.any(axis=1), 1.0 + above + level / 2, np.nan)


def first(ranks: Array) -> Array:
    """1 where the correct option comes first, else 0 (top-1); a tie for the first place is no win; NaN stays."""
    return np.where(np.isnan(ranks), np.nan, (ranks == 1.0).astype(np.float64))


class Chance(NamedTuple):
    """What a model that knows nothing gets on average: of belief or first places, and of reciprocal ranks."""

    share: float
    reciprocal_rank: float


def chance(correct: Mask) -> Chance:
    """The mean over rows that have a correct option, of which there may be several; NaN where no row has one.

    >>> chance(np.array([[True, False]]))
    Chance(share=0.5, reciprocal_rank=0.75)
    """
    counts = correct.sum(axis=1)
    rows, options = np.bincount(counts[counts > 0]), correct.shape[1]
    if not rows.sum():
        return Chance(np.nan, np.nan)
    ranks = [_reciprocal_rank(options, right) if many else 0.0 for right, many in enumerate(rows)]
    return Chance(
        float((rows * np.arange(len(rows))).sum() / rows.sum() / options), float((rows * ranks).sum() / rows.sum())
    )


def _reciprocal_rank(options: int, right: int) -> float:
    """Mean of 1/rank of the first of `right` options when all orders are as likely: for one, the mean of 1, 1/2, …"""
    places = np.arange(1, options - right + 2)
    return float((comb(options - places, right - 1) / places).sum() / comb(options, right))


def half_precision_mean(values: npt.NDArray[Any]) -> float:
    """The mean as APA's released scripts take it: values and mean rounded to float16.

    >>> half_precision_mean(np.array([0.1, 0.2]))
    0.14990234375
    """
    halves = np.asarray(values, dtype=np.float64).astype(np.float16)
    return float(np.float16(halves.astype(np.float64).mean()))
