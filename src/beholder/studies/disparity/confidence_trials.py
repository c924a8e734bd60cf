"""Disparity's calibration errors where every confidence is exactly right: what is found then is chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from beholder.metrics.bootstrap import Resampler, centred_interval
from beholder.metrics.calibration import calibration
from beholder.metrics.intervals import difference_reach
from beholder.metrics.miscalibration import miscalibration
from beholder.studies.trial import Experiment, Outcome, Trial

DRAWS = 300
KINDS = ("ece_gap", "ece_adaptive_gap", "brier_gap", "miscalibration_gap")
SIZES_ALONE = "the error of a small group is larger by chance, so a gap follows the groups' sizes"
WIDE = "both groups may be off by more than was seen, and the interval allows for both: too wide, on the safe side"
FOLDED = "errors near 0 cannot be negative, so draws spread wider than worlds: too wide, on the safe side"


def confidence_experiments() -> Iterator[Experiment]:
    """Two groups, equally large and not."""
    yield _gap((400, 400))
    yield _gap((900, 150))


def _gap(sizes: tuple[int, int]) -> Experiment:
    setting = f"groups of {sizes[0]} and {sizes[1]}, every confidence right"
    said = SIZES_ALONE if sizes[0] != sizes[1] else FOLDED
    exceptions = (said, said, "", WIDE)
    trials = tuple(
        Trial(f"disparity.{kind}", setting, min(sizes), 0.0, exception=exception)
        for kind, exception in zip(KINDS, exceptions, strict=True)
    )
    return Experiment(f"confidence {setting}", trials, partial(_draw, sizes))


def _draw(sizes: tuple[int, int], rng: np.random.Generator) -> Sequence[Outcome]:
    """As the benchmark does it: pictures drawn again by group, intervals laid around the value."""
    groups = np.repeat([0, 1], sizes)
    confidence = rng.beta(1.0, 2.0, len(groups))
    shows = rng.random(len(groups)) < confidence
    resampler = Resampler(np.arange(len(groups)), rng, DRAWS, strata=groups)
    weights = np.concatenate([np.ones((1, len(groups))), *resampler.weights()])
    found = [
        np.array(calibration(confidence[mine], shows[mine], weights[:, mine].T)) for mine in (groups == 0, groups == 1)
    ]
    gaps = np.asarray(found[0] - found[1], dtype=np.float64)
    drawn = [Outcome(float(gap[0]), *centred_interval(gap[1:], float(gap[0]))) for gap in gaps]
    first, second = (miscalibration(confidence[mine], shows[mine]) for mine in (groups == 0, groups == 1))
    gap, reach = first.value - second.value, difference_reach(first.reach, second.reach)
    return [*drawn, Outcome(gap, gap - reach.below, gap + reach.above)]
