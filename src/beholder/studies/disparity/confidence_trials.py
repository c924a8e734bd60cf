"""Disparity's calibration errors in worlds where every confidence is exactly right: any error is then chance."""

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
SIZES_ALONE = "the error of a small group is larger by chance, so a gap depends on the groups' sizes"
WIDE = "the interval allows for a larger error in both groups at once: too wide, on the safe side"
FOLDED = "errors near 0 cannot be negative, so draws vary more than worlds: too wide, on the safe side"


def confidence_experiments() -> Iterator[Experiment]:
    """Two groups of equal size, and two of unequal size."""
    yield _gap((400, 400))
    yield _gap((900, 150))


def confidence_setting(sizes: tuple[int, int]) -> str:
    """A world in words."""
    return f"groups of {sizes[0]} and {sizes[1]}, every confidence right"


def _gap(sizes: tuple[int, int]) -> Experiment:
    setting = confidence_setting(sizes)
    published = SIZES_ALONE if sizes[0] != sizes[1] else FOLDED
    exceptions = (published, published, "", WIDE)
    trials = tuple(
        Trial(f"disparity.{kind}", setting, min(sizes), 0.0, exception=exception)
        for kind, exception in zip(KINDS, exceptions, strict=True)
    )
    return Experiment(f"confidence {setting}", trials, partial(_draw, sizes))


def _draw(sizes: tuple[int, int], rng: np.random.Generator) -> Sequence[Outcome]:
    """As the study does it: images resampled within each group, intervals around the value."""
    groups = np.repeat([0, 1], sizes)
    confidence = rng.beta(1.0, 2.0, len(groups))
    shows = rng.random(len(groups)) < confidence
    resampler = Resampler(np.arange(len(groups)), rng, DRAWS, strata=groups)
    weights = np.concatenate([np.ones((1, len(groups))), *resampler.weights()])
    members = groups == 0, groups == 1
    errors = [np.array(calibration(confidence[own], shows[own], weights[:, own].T)) for own in members]
    gaps = np.asarray(errors[0] - errors[1], dtype=np.float64)
    drawn = [Outcome(float(gap[0]), *centred_interval(gap[1:], float(gap[0]))) for gap in gaps]
    first, second = (miscalibration(confidence[own], shows[own]) for own in members)
    gap, reach = first.value - second.value, difference_reach(first.reach, second.reach)
    return [*drawn, Outcome(gap, gap - reach.below, gap + reach.above)]
