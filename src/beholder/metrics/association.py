"""Association: how much of a model's belief falls on the right prompt, name or picture.

Pure functions: arrays in, arrays out. No files, no models, no randomness. Probabilities are shares of belief among
the options offered: 1 means all of it, 1/n means as much as a model that knows nothing gives to each of n options.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

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


def half_precision_mean(values: npt.NDArray[Any]) -> float:
    """The mean as APA's released scripts take it: values and mean rounded to float16.

    >>> half_precision_mean(np.array([0.1, 0.2]))
    0.1500244140625
    """
    halves = np.asarray(values, dtype=np.float64).astype(np.float16)
    return float(np.float16(halves.astype(np.float64).mean()))
