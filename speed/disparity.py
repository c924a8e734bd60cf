"""All draws of a ranking's average precision are computed at once, many times as fast as scikit-learn draw by draw.

Concepts are as frequent as in Visual Genome: from 50 of 12,500 images up to half of them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator

import numpy as np
from bench import Claim, alone, compared, main, timed
from sklearn.metrics import average_precision_score

from beholder.metrics.average_precision import resampled, shuffled
from beholder.metrics.intervals import Resampler


def world(images: int, concepts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, presence and two groups; frequencies are spread evenly on a logarithmic scale."""
    rng = np.random.default_rng(0)
    shares = np.exp(rng.uniform(np.log(0.004), np.log(0.5), concepts))
    present = rng.random((images, concepts)) < shares
    scores = (rng.standard_normal((images, concepts)) + 1.5 * present).astype(np.float32)
    return scores, present, np.arange(images) % 2


def bootstrap(options: Namespace) -> Iterator[Claim]:
    """Ours, which matches prevalences too, against a loop over a part of the draws."""
    images, concepts, draws, looped = (2000, 3, 20, 2) if options.quick else (25_000, 64, 200, 1)
    scores, present, groups = world(images, concepts)
    sets = [groups == 0, groups == 1]
    resampler = Resampler(np.arange(images), np.random.default_rng(1), draws, strata=groups)
    weights = next(iter(resampler.weights()))[:looped]

    def loop() -> None:
        for draw in weights:
            for concept in range(concepts):
                for rows in sets:
                    average_precision_score(present[rows, concept], scores[rows, concept], sample_weight=draw[rows])

    ways = [
        timed("ours", lambda: resampled(scores, present, sets, resampler), repeats=1),
        timed(f"scikit-learn, {looped} draw(s), scaled up", loop, repeats=1, share=looped / draws),
    ]
    size = f"{images:,} images × {concepts} concepts × 2 groups × {draws} draws"
    yield compared(f"Disparity: the bootstrap of {size}", ways)


def draws_of(images: int, concepts: int, draws: int) -> Callable[[], object]:
    """All draws of all concepts."""
    scores, present, groups = world(images, concepts)

    def work() -> None:
        resampler = Resampler(np.arange(images), np.random.default_rng(1), draws, strata=groups)
        resampled(scores, present, [groups == 0, groups == 1], resampler)

    return work


def shuffles_of(images: int, concepts: int, draws: int) -> Callable[[], object]:
    """As many shuffles of the groups."""
    scores, present, groups = world(images, concepts)
    return lambda: shuffled(scores, present, groups, np.random.default_rng(2), draws)


def large(options: Namespace) -> Iterator[Claim]:
    """Time and memory at Visual Genome's size."""
    images, concepts, draws = (200, 3, 20) if options.quick else (25_000, 408, 1_000)
    ways = [
        alone(name, work, images, concepts, draws) for name, work in (("draws", draws_of), ("shuffles", shuffles_of))
    ]
    size = f"{images:,} images × {concepts} concepts × 2 groups × {draws:,}"
    yield compared(f"Disparity: {size} draws and as many shuffles, each in a process of its own", ways)


if __name__ == "__main__":
    main(bootstrap, large)
