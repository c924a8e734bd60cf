"""Ranking metrics at full size, as a ratio: one pass of cumulative counts against a loop over the prefixes.

`python speed/ranking.py` also prints the time of 100,000 images × 48 words × 2 attributes.
"""

from __future__ import annotations

import time
from math import log, log2

import numpy as np
import numpy.typing as npt

from beholder.metrics.ranking import descending, ranked

ATTRIBUTES = {"gender": 2, "race": 3}
WORDS, TOP = 48, 1000


def one_pass(scores: npt.NDArray[np.float64], codes: dict[str, npt.NDArray[np.int_]]) -> None:
    """Skew@k, MaxSkew@k and NDKL of every word and attribute."""
    order = descending(scores)
    for name, count in ATTRIBUTES.items():
        ranked(order, codes[name], np.full(count, 1 / count), min(TOP, len(scores)))


def prefix_by_prefix(scores: npt.NDArray[np.float64], codes: dict[str, npt.NDArray[np.int_]]) -> None:
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


def timed(images: int, words: int, work: object) -> float:
    """Seconds for so many images and words, the faster of two runs."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(images, words))
    codes = {name: rng.integers(count, size=images) for name, count in ATTRIBUTES.items()}
    times = []
    for _ in range(2):
        began = time.perf_counter()
        work(scores, codes)  # type: ignore[operator]
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    fast, slow = timed(5000, 4, one_pass), timed(5000, 4, prefix_by_prefix)
    print(
        f"5,000 images × 4 words: {slow / fast:.0f} × as fast as prefix by prefix ({slow:.2f} s against {fast:.4f} s)"
    )
    print(f"100,000 images × {WORDS} words × {len(ATTRIBUTES)} attributes: {timed(100_000, WORDS, one_pass):.2f} s")
