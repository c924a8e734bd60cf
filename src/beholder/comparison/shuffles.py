"""Shuffles: what the labels could have been if they meant nothing. People change places within blocks.

With few arrangements all of them are taken; else a sample, in which the arrangement itself counts as one. Pure.
Beside shuffled groups (`means.py`), three comparisons are made here:
- pairs: two models (or two moments) that saw the same people. If they did not differ, they could change places for any
  unit (a person, or a few together): what it adds to the differences would change its sign. All flip together.
- exchanged answers: does a model give more belief to what is right for a person than to what is right for others?
  Right answers are exchanged among people of one block (such as one gender), so that what a model believes of
  everybody, or of a whole block, is no evidence.
- ranks: do two numbers per person rise together (Spearman), beyond what their blocks explain?
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import lgamma
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from beholder.comparison import family
from beholder.comparison.family import FEWEST_ARRANGEMENTS, SURE, Part
from beholder.core.types import Array, Codes, Floating

SHUFFLES = 1999
HELD = 1 << 22  # places held at once: shuffles come in parts


class Shuffles:
    """Permutations of places within `blocks`, such that all arrangements of `labels` are equally likely."""

    def __init__(self, labels: Codes, blocks: Codes, rng: np.random.Generator, count: int = SHUFFLES) -> None:
        self._labels, self._rng = labels, rng
        self._blocks = np.unique(blocks, return_inverse=True)[1] if len(blocks) else blocks
        self.arrangements = arrangements(labels, self._blocks)
        self.exact = self.arrangements <= count
        self.count = round(self.arrangements) if self.exact else count

    def parts(self, most: int = HELD) -> Iterator[Codes]:
        """Permutations, `[some, n]`, at most so many: the label at place i becomes that of place `permutation[i]`."""
        # Exact ones begin with the labels as they are.
        size = max(1, min(most, HELD // max(1, len(self._labels))))
        if self.exact:
            whole = np.array(list(self._all()), dtype=np.intp)
            yield from (whole[start : start + size] for start in range(0, len(whole), size))
            return
        order = np.argsort(self._blocks, kind="stable")
        sizes = np.bincount(self._blocks)
        for start in range(0, self.count, size):
            many = min(size, self.count - start)
            if len(sizes) == 1:
                yield self._rng.permuted(np.tile(np.arange(len(order)), (many, 1)), axis=1)
                continue
            keys = self._blocks[order] + self._rng.random((many, len(order)))
            part = np.empty((many, len(order)), dtype=np.intp)
            part[:, order] = order[np.argsort(keys, axis=1)]
            yield part

    def judged(self, value: Floating, null: Sequence[Floating], *, people: npt.ArrayLike, **more: Any) -> Part:
        """Numbers `[…]` as a part of a family, by what these permutations made of them, part after part."""
        joined, count = np.concatenate(null), self.arrangements
        return family.part_from_null(value, joined, people=people, arrangements=count, exact=self.exact, **more)

    def _all(self) -> Iterator[Codes]:
        """One permutation for every arrangement of the labels, the labels as they are first."""
        places = [np.flatnonzero(self._blocks == block) for block in range(int(self._blocks.max(initial=-1)) + 1)]
        for chosen in product(*(list(_arranged(self._labels[rows].tolist())) for rows in places)):
            permutation = np.arange(len(self._labels))
            for rows, labels in zip(places, chosen, strict=True):
                to, of = (np.argsort(each, kind="stable") for each in (np.array(labels), self._labels[rows]))
                permutation[rows[to]] = rows[of]
            yield permutation


def arrangements(labels: Codes, blocks: Codes) -> float:
    """In how many ways the labels can stand; infinite where there are more than a float can hold."""
    logs = 0.0
    for block in np.unique(blocks):
        counts = np.unique(labels[blocks == block], return_counts=True)[1]
        logs += lgamma(counts.sum() + 1) - sum(lgamma(count + 1) for count in counts)
    return float(np.round(np.exp(logs), 6)) if logs < 600 else np.inf


def _arranged(labels: list[int]) -> Iterator[tuple[int, ...]]:
    """Every order of these labels once, the given one first."""
    yield tuple(labels)
    current = sorted(labels)
    while True:
        if current != labels:
            yield tuple(current)
        i = next((i for i in range(len(current) - 2, -1, -1) if current[i] < current[i + 1]), None)
        if i is None:
            return
        j = next(j for j in range(len(current) - 1, i, -1) if current[j] > current[i])
        current[i], current[j] = current[j], current[i]
        current[i + 1 :] = current[:i:-1]


MOST_FLIPS = 1000  # units whose flips a float can count; more are as good as endless
NOTHING = 1e-6  # relative to the difference: spreads below this are rounding errors


def shares_of(whole: Array, without: Array, count: Array, left: Array) -> tuple[Array, Array]:
    """What each unit adds to differences, and its weight, from leaving it out: for `compare_pairs`.

    `without[n_units, n_columns]` are the differences without each unit; `count` and `left` are what the numbers count
    (images, people), with all units and without each.
    """
    weights = np.maximum(1 - left / np.maximum(count, 1), 0.0)
    total = weights.sum(axis=0)
    weights = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / max(len(left), 1))
    shares = (whole - without) * (1 - weights) + weights * whole
    return shares + (whole - shares.sum(axis=0)) * weights, weights


def compare_pairs(shares: Array, weights: Array, rng: np.random.Generator, shuffles: int = SHUFFLES) -> Part:
    """Differences from what units add to them, `shares[n_units, n_columns]`: a part `[n_columns]` of a family.

    `weights` are what units would add to a difference of 1 that is alike for all: each column of them adds up to 1.
    A column with a NaN is not judged.
    """
    units, known = len(shares), ~np.isnan(shares).any(axis=0)
    shares, weights = np.where(known, shares, 0.0), np.where(known, weights, 0.0)
    ways = 2.0 ** min(units, MOST_FLIPS)
    exact = ways <= shuffles
    if exact:
        signs = np.asarray(1.0 - 2.0 * ((np.arange(2**units)[:, None] >> np.arange(units)) & 1), dtype=np.float64)
    else:
        signs = rng.choice([-1.0, 1.0], size=(shuffles, units))
    value, error, freedom = _estimates(np.ones((1, units)), shares, weights)
    deviate = family.deviates(value, error, freedom)[0]
    scale, largest = family.largest_of(family.deviates(*_estimates(signs, shares, weights)), deviate, exact=exact)
    moving = np.where(known, (np.abs(shares) > 0).sum(axis=0), 0)
    # Where nobody's share moves, all are alike: nothing differs, however few could have.
    people = np.where(moving > 0, np.where(moving < np.log2(FEWEST_ARRANGEMENTS), 0, moving), (weights > 0).sum(axis=0))
    # If a share q of people did not differ, n units would all differ alike with probability (1 − q)ⁿ.
    least = np.where(error[0] > 0, 0.0, np.abs(value[0]) * (1 - SURE ** (1 / np.maximum(moving, 1))))
    made = np.where(known, value[0], np.nan), error[0], freedom[0], deviate
    return Part(*made, scale, largest, exact, ways, people, least)


def _estimates(signs: Array, shares: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Differences after flips, their errors and degrees of freedom: `[n_flips, n_columns]` each."""
    # Freedom is that of as many normal units as would have these fourth powers: a few that count for all count as few.
    value = signs @ shares
    turned = value * (signs @ (shares * weights))
    squares = (shares**2).sum(axis=0) - 2 * turned + value**2 * (weights**2).sum(axis=0)
    fourths = (
        (shares**4).sum(axis=0)
        - 4 * value * (signs @ (shares**3 * weights))
        + 6 * value**2 * (shares**2 * weights**2).sum(axis=0)
        - 4 * value**3 * (signs @ (shares * weights**3))
        + value**4 * (weights**4).sum(axis=0)
    )
    squares = np.where(squares <= NOTHING**2 * value**2, 0.0, squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(squares / np.maximum(1 - (weights**2).sum(axis=0), 1e-9))
        alike = np.where(squares > 0, 3 * squares**2 / fourths, np.inf)
    return value, error, np.clip(0.8 * alike - 1, 1.0, max(len(shares) - 1, 1))


class Exchanged(NamedTuple):
    """Mean belief in the right answers, what exchanged answers give, and the part of a family that judges it."""

    value: float
    expected: float  # the mean over all exchanges, exactly
    part: Part  # one number: value less expected; only more than expected counts


def exchanged(
    beliefs: Array, answers: Codes, blocks: Codes, rng: np.random.Generator, shuffles: int = SHUFFLES
) -> Exchanged | None:
    """From `beliefs[n_people, n_answers]`; None where all people of every block have the same answer: no contrast."""
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
    null = [beliefs[np.arange(len(answers)), answers[part]].mean(axis=1)[:, None] for part in moves.parts()]
    value, centre = np.array([right.mean()]), np.array([expected.mean()])
    part = moves.judged(value, null, people=several, one_sided=True, centre=centre)
    return Exchanged(float(right.mean()), float(expected.mean()), part)


ALIKE = 1e-9  # squares of ranks below which all are alike: any two that differ lie half a rank apart at least


def compare_ranks(
    first: Array, second: Array, blocks: Codes, rng: np.random.Generator, shuffles: int = SHUFFLES
) -> Part:
    """The correlation of one entry per person, as a part of one number; people change places within blocks."""
    # Nothing is judged where either is all alike within every block.
    one, other = (centred(rankdata(values), blocks) for values in (first, second))
    length = np.sqrt((one**2).sum() * (other**2).sum())
    if min((one**2).sum(), (other**2).sum()) <= ALIKE:
        return family.not_judgeable(np.array([len(first)]))
    moves = Shuffles(np.unique(first, return_inverse=True)[1], blocks, rng, shuffles)
    null = [(one[part] @ other)[:, None] / length for part in moves.parts()]
    return moves.judged(np.array([one @ other / length]), null, people=len(first), centre=np.zeros(1))


def centred(values: Array, blocks: Codes) -> Array:
    """Each value less the mean of its block."""
    codes = np.unique(blocks, return_inverse=True)[1]
    return np.asarray(values - (np.bincount(codes, values) / np.bincount(codes))[codes])
