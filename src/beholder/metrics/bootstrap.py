"""Bootstrap: how far a number could have come out otherwise, had other people been photographed.

Resampling is by cluster (a person with all their pictures). A draw is a vector of weights, so that all draws of all
means are one matrix product. The generator is passed in: equal generators give equal intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

Array = npt.NDArray[np.float64]
CELLS = 1 << 22
"""Weights held at once: draws come in parts, so memory does not grow with images × draws."""
KEPT = 1 << 26
"""Weights kept for the next number, a byte each where there are several parts; drawing them anew is slow."""


FEWEST = 5
"""People below whom no interval is given: resampling two or three of them says how they differ and nothing more."""


class Interval(NamedTuple):
    """Bounds of a 95 % interval; NaN where there is too little to say."""

    low: float
    high: float


class Resampler:
    """Draws of people, shared by every number that is computed from the same images.

    With `strata`, a number for each image, every stratum is drawn from apart: how many people it has is a property
    of the data set, not of chance.
    """

    def __init__(
        self,
        clusters: npt.NDArray[Any],
        rng: np.random.Generator,
        draws: int = 2000,
        *,
        strata: npt.NDArray[np.integer[Any]] | None = None,
    ) -> None:
        names, self._cluster_of = np.unique(clusters, return_inverse=True)
        self.n_clusters, self.draws = len(names), draws
        self._sizes = [self.n_clusters]
        if strata is not None:
            pairs = np.stack([strata, self._cluster_of], axis=1)
            apart, self._cluster_of = np.unique(pairs, axis=0, return_inverse=True)
            self._sizes = np.bincount(apart[:, 0])[np.unique(apart[:, 0])].tolist()
            self.n_clusters = len(apart)
        self._seed = int(rng.integers(2**63))
        self._kept: list[npt.NDArray[Any]] = []

    @property
    def cluster_of(self) -> npt.NDArray[np.intp]:
        """The number of each image's cluster: what is drawn together has one number."""
        return self._cluster_of

    def weights(self) -> Iterator[Array]:
        """How often each image counts in each draw, `[part of the draws, n_images]`, part after part."""
        if self._kept:
            yield from (part.astype(np.float64, copy=False) for part in self._kept)
            return
        rng, kept = np.random.default_rng(self._seed), []
        size = max(1, CELLS // max(1, len(self._cluster_of)))
        even = [np.full(members, 1 / max(1, members)) for members in self._sizes]
        kind = np.float64 if size >= self.draws else np.uint8  # nobody is drawn 256 times (one in 256 factorial)
        for start in range(0, self.draws, size):
            many = min(size, self.draws - start)
            counts = np.concatenate([rng.multinomial(len(each), each, size=many) for each in even], axis=1)
            part = counts.astype(kind)[:, self._cluster_of]
            if self.draws * len(self._cluster_of) <= KEPT:
                kept.append(part)
            yield part.astype(np.float64, copy=False)
        self._kept = kept

    def means(self, values: Array) -> Array:
        """The mean of each column of `values` in each draw, `[draws, n_columns]`; NaN cells count for nothing."""
        values = values.reshape(len(self._cluster_of), -1)
        there = ~np.isnan(values)
        known = np.where(there, values, 0.0)
        parts = []
        for weights in self.weights():
            with np.errstate(invalid="ignore"):
                parts.append((weights @ known) / (weights @ there.astype(np.float64)))
        return np.concatenate(parts)


def percentile_interval(draws: npt.NDArray[Any], level: float = 0.95) -> Interval:
    """The middle `level` of the draws; draws that came out undefined are left aside."""
    defined = draws[np.isfinite(draws)]
    if defined.size < draws.size / 2 or not defined.size:
        return Interval(np.nan, np.nan)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def centred_interval(draws: npt.NDArray[Any], value: float, level: float = 0.95) -> Interval:
    """The spread of the draws laid around `value`, for numbers whose draws are off it on average.

    A draw shows some pictures twice, and a precision or a distance from 0 comes out larger for that; how far draws
    lie apart is unmoved by it.
    """
    low, high = percentile_interval(draws, level)
    off = value - float(np.mean(draws[np.isfinite(draws)])) if np.isfinite(low) else np.nan
    return Interval(low + off, high + off)


def exact_proportion_interval(hits: int, n: int, level: float = 0.95) -> Interval:
    """Clopper–Pearson bounds of a share: honest where all or none succeeded and resampling shows no spread."""
    tail = (1 - level) / 2
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return Interval(low, high)
