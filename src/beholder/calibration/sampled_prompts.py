"""A mean over images and prompts, where the prompts are a sample: resampling images alone says too little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import ndtr

from beholder.glasshouse.oracle import Noise, Oracle
from beholder.metrics.bootstrap import Resampler, percentile_interval
from beholder.metrics.intervals import mean_interval, two_way_means
from beholder.studies.trial import Experiment, Outcome, Trial

PROMPTS, IMAGES, DRAWS = 20, 100, 500
NOISE = Noise(image=0.7, prompt=0.7, cell=0.7)
BASE = -0.3


def prompt_experiments() -> Iterator[Experiment]:
    """One world, its prompts drawn anew each time."""
    spread = np.sqrt(1 + NOISE.of_pictures**2 + NOISE.prompt**2)
    truth = float(ndtr(BASE / spread))
    setting = f"{IMAGES} images, {PROMPTS} prompts of many"
    alone = "prompts are a sample too, and only images were drawn again"
    trials = (
        Trial("mean over prompts", setting, IMAGES, truth, kind="images and prompts drawn"),
        Trial("mean over prompts", setting, IMAGES, truth, kind="images drawn", exception=alone),
    )
    yield Experiment("prompts as a sample", trials, _draw)


def _draw(rng: np.random.Generator) -> Sequence[Outcome]:
    oracle = Oracle(BASE, noise=NOISE)
    levels = oracle.levels(PROMPTS, 1, rng)
    table = oracle.probability({"person": np.arange(IMAGES)}, levels, rng)[:, :, 0]
    rows, columns = (Resampler(np.arange(size), rng, DRAWS) for size in (IMAGES, PROMPTS))
    both = percentile_interval(two_way_means(table, rows, columns))
    return [Outcome(float(table.mean()), *both), Outcome(float(table.mean()), *mean_interval(table.mean(axis=1), rows))]
