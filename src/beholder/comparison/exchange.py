"""Exchanged answers: does a model give more belief to what is right for a person than to what is right for others?

The null is belief in the same answers, for people for whom they are wrong: right answers are exchanged among people of
the same block (such as one gender), so that what a model believes of everybody, or of a whole block, is no evidence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.comparison.family import Part, part_from_null
from beholder.comparison.people import Codes
from beholder.comparison.shuffles import SHUFFLES, Shuffles

Array = npt.NDArray[np.float64]


class Exchanged(NamedTuple):
    """Mean belief in the right answers, what exchanged answers give, and the part of a family that judges it."""

    value: float
    expected: float
    """The mean over all exchanges, exactly."""
    by_person: Array
    """For each person, belief in the right answer less that in the answers of the block, on average."""
    part: Part
    """One number: value less expected; only more than expected counts."""


def exchanged(
    beliefs: Array, answers: Codes, blocks: Codes, rng: np.random.Generator, shuffles: int = SHUFFLES
) -> Exchanged | None:
    """From `beliefs[n_people, n_answers]`; None where all people of every block have the same answer: no contrast.

    >>> made = exchanged(np.eye(8), np.arange(8), np.zeros(8, int), np.random.default_rng(0))
    >>> made.value, made.expected
    (1.0, 0.125)
    """
    right = beliefs[np.arange(len(answers)), answers]
    expected = np.empty(len(answers))
    several = 0
    for block in np.unique(blocks):
        mine = np.flatnonzero(blocks == block)
        shares = np.bincount(answers[mine], minlength=beliefs.shape[1]) / len(mine)
        expected[mine] = beliefs[mine] @ shares
        several += len(mine) if (shares < 1).all() else 0
    if not several:
        return None
    moves = Shuffles(answers, blocks, rng, shuffles)
    null = [beliefs[np.arange(len(answers)), answers[part]].mean(axis=1) for part in moves.parts()]
    part = part_from_null(
        np.array([right.mean()]),
        np.concatenate(null)[:, None],
        people=several,
        arrangements=moves.arrangements,
        exact=moves.exact,
        one_sided=True,
        centre=np.array([expected.mean()]),
    )
    return Exchanged(float(right.mean()), float(expected.mean()), right - expected, part)
