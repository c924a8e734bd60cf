"""Skew and NDKL of all words take one pass of cumulative counts, many times as fast as a loop over the prefixes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from math import log, log2

import numpy as np
import numpy.typing as npt
from bench import Claim, compared, main, timed

from beholder.metrics.association import descending, ndkl, skew_at_k

ATTRIBUTES = {"gender": 2, "race": 3}
TOP = 1000
Scores, Codes = npt.NDArray[np.float64], dict[str, npt.NDArray[np.int_]]


def one_pass(scores: Scores, codes: Codes) -> None:
    """Skew@k, MaxSkew@k and NDKL of every word and attribute."""
    order = descending(scores)
    for name, count in ATTRIBUTES.items():
        ranking, desired = codes[name][order], np.full(count, 1 / count)
        skew_at_k(ranking, desired, min(TOP, len(scores))).max(axis=1)
        ndkl(ranking, desired)


def prefix_by_prefix(scores: Scores, codes: Codes) -> None:
    """NDKL as it is written down: counts of every prefix, one after the other."""
    for column in scores.T:
        order = np.argsort(-column)
        for name, count in ATTRIBUTES.items():
            seen, total, weights = [0] * count, 0.0, 0.0
            for rank, code in enumerate(codes[name][order], start=1):
                seen[code] += 1
                divergence = sum(c / rank * log(c / rank * count) for c in seen if c)
                total += divergence / log2(rank + 1)
                weights += 1 / log2(rank + 1)


def rankings(options: Namespace) -> Iterator[Claim]:
    """NDKL by both ways; ours also computes the skews."""
    images, words = 200 if options.quick else 20_000, 4
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(images, words))
    codes = {name: rng.integers(count, size=images) for name, count in ATTRIBUTES.items()}
    ways = [
        timed("ours", lambda: one_pass(scores, codes)),
        timed("prefix by prefix", lambda: prefix_by_prefix(scores, codes)),
    ]
    yield compared(f"Perception: rankings of {images:,} images by {words} words, {len(ATTRIBUTES)} attributes", ways)


if __name__ == "__main__":
    main(rankings)
