"""Ranks: do two numbers about the same people rise together, beyond what their blocks explain?

Spearman's correlation, from −1 (one falls where the other rises) over 0 to 1. With several blocks it is the partial
one: what goes together only because whole blocks differ is taken off.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from beholder.comparison.family import Part, nothing_told, part_from_null
from beholder.comparison.people import Codes
from beholder.comparison.shuffles import SHUFFLES, Shuffles

Array = npt.NDArray[np.float64]
ALIKE = 1e-9
"""Squares of ranks below which all are alike: any two that differ lie half a rank apart at least."""


def compare_ranks(
    first: Array, second: Array, blocks: Codes, rng: np.random.Generator, shuffles: int = SHUFFLES
) -> Part:
    """The correlation of one entry per person, as a part of one number; people change places within blocks.

    Nothing is told where either is all alike within every block.

    >>> compare_ranks(np.arange(6.0), -np.arange(6.0), np.zeros(6, int), np.random.default_rng(0), 99).value.round(9)
    array([-1.])
    """
    one, other = (_centred(rankdata(values), blocks) for values in (first, second))
    length = np.sqrt((one**2).sum() * (other**2).sum())
    if min((one**2).sum(), (other**2).sum()) <= ALIKE:
        return nothing_told(np.array([len(first)]))
    moves = Shuffles(np.unique(first, return_inverse=True)[1], blocks, rng, shuffles)
    null = np.concatenate([one[part] @ other for part in moves.parts()]) / length
    return part_from_null(
        np.array([one @ other / length]),
        null[:, None],
        people=len(first),
        arrangements=moves.arrangements,
        exact=moves.exact,
        centre=np.zeros(1),
    )


def _centred(ranks: Array, blocks: Codes) -> Array:
    """What is left of ranks without their block's mean."""
    codes = np.unique(blocks, return_inverse=True)[1]
    return np.asarray(ranks - (np.bincount(codes, ranks) / np.bincount(codes))[codes])
