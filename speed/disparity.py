"""Disparity's bootstrap, as a ratio: all draws of a ranking at once against scikit-learn, draw by draw.

`python speed/disparity.py` also prints time and peak memory of 25,000 images × 408 concepts × 2 groups × 1,000
draws in a process of its own, and of as many shuffles. Concepts are as frequent as in Visual Genome: from 50 images
of each group up to half of them.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.metrics import average_precision_score

from beholder.metrics.bootstrap import Resampler
from beholder.metrics.precision_gaps import resampled, shuffled


def world(images: int, concepts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, presence and two groups; frequencies are spread evenly on a logarithmic scale."""
    rng = np.random.default_rng(0)
    shares = np.exp(rng.uniform(np.log(0.004), np.log(0.5), concepts))
    present = rng.random((images, concepts)) < shares
    scores = (rng.standard_normal((images, concepts)) + 1.5 * present).astype(np.float32)
    return scores, present, np.arange(images) % 2


def ratio(images: int = 25_000, concepts: int = 64, draws: int = 200, looped: int = 2) -> None:
    """Time of one draw of one concept and group, ours and scikit-learn's."""
    scores, present, groups = world(images, concepts)
    sets = [groups == 0, groups == 1]
    resampler = Resampler(np.arange(images), np.random.default_rng(1), draws, strata=groups)
    began = time.perf_counter()
    resampled(scores, present, sets, resampler)
    ours = (time.perf_counter() - began) / (draws * concepts * 2)
    weights = next(iter(resampler.weights()))[:looped]
    began = time.perf_counter()
    for draw in weights:
        for concept in range(concepts):
            for rows in sets:
                average_precision_score(present[rows, concept], scores[rows, concept], sample_weight=draw[rows])
    theirs = (time.perf_counter() - began) / (looped * concepts * 2)
    print(
        f"disparity: {theirs / ours:.0f} × as fast as scikit-learn draw by draw "
        f"({1e6 * theirs:.0f} µs against {1e6 * ours:.1f} µs for 12,500 images; ours also at matched prevalence)"
    )


def large(images: int = 25_000, concepts: int = 408, draws: int = 1_000) -> None:
    """The whole bootstrap, then as many shuffles."""
    scores, present, groups = world(images, concepts)
    what = f"{images:,} images × {concepts} concepts × 2 groups × {draws:,}"
    for name in ("draws", "shuffles"):
        began, cpu = time.perf_counter(), time.process_time()
        if name == "draws":
            resampler = Resampler(np.arange(images), np.random.default_rng(1), draws, strata=groups)
            resampled(scores, present, [groups == 0, groups == 1], resampler)
        else:
            shuffled(scores, present, groups, np.random.default_rng(2), draws)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        spent = f"{time.perf_counter() - began:.0f} s ({time.process_time() - cpu:.0f} s of CPU)"
        print(f"disparity: {what} {name} in {spent}, {peak:.2f} GB at the peak")


if __name__ == "__main__":
    if sys.argv[1:] == ["--large"]:
        large()
    else:
        ratio()
        subprocess.run([sys.executable, __file__, "--large"], check=True)
