"""Shuffles: what the labels could have been if they meant nothing. People change places within blocks.

With few arrangements all of them are taken; else a sample, in which the arrangement itself counts as one. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import lgamma

import numpy as np
import numpy.typing as npt

from beholder.comparison.people import Codes

SHUFFLES = 1999
HELD = 1 << 22
"""Places held at once: shuffles come in parts."""


class Shuffles:
    """Permutations of places within `blocks`, such that all arrangements of `labels` are equally likely."""

    def __init__(self, labels: Codes, blocks: Codes, rng: np.random.Generator, count: int = SHUFFLES) -> None:
        self._labels, self._rng = labels, rng
        self._blocks = np.unique(blocks, return_inverse=True)[1] if len(blocks) else blocks
        self.arrangements = arrangements(labels, self._blocks)
        self.exact = self.arrangements <= count
        self.count = round(self.arrangements) if self.exact else count

    def parts(self) -> Iterator[npt.NDArray[np.intp]]:
        """Permutations, `[some, n]`: the label at place i becomes that of place `permutation[i]`.

        Exact ones begin with the labels as they are.
        """
        size = max(1, HELD // max(1, len(self._labels)))
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

    def _all(self) -> Iterator[npt.NDArray[np.intp]]:
        """One permutation for every arrangement of the labels, the labels as they are first."""
        places = [np.flatnonzero(self._blocks == block) for block in range(int(self._blocks.max(initial=-1)) + 1)]
        for chosen in product(*(list(_arranged(self._labels[rows].tolist())) for rows in places)):
            permutation = np.arange(len(self._labels))
            for rows, labels in zip(places, chosen, strict=True):
                permutation[rows] = rows[_match(self._labels[rows], np.array(labels))]
            yield permutation


def arrangements(labels: Codes, blocks: Codes) -> float:
    """In how many ways the labels can stand; infinite where there are more than a float can hold.

    >>> arrangements(np.array([0, 0, 1, 1]), np.zeros(4, int))
    6.0
    """
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


def _match(labels: Codes, wanted: Codes) -> npt.NDArray[np.intp]:
    """For every place, a place of `labels` that has the wanted label, each used once."""
    match = np.empty(len(labels), dtype=np.intp)
    match[np.argsort(wanted, kind="stable")] = np.argsort(labels, kind="stable")
    return match
