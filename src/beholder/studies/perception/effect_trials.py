"""Trials of causal effects and absolute differences in the drawn design, where every effect is planted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import polars as pl

from beholder.glasshouse.design import design
from beholder.metrics.clustered import Estimates
from beholder.studies.perception.design import Contrast, contrasts, effect, interaction_estimates
from beholder.studies.perception.oracle import SMILE_BONUS, oracle_scores, planted_effect
from beholder.studies.study import MeasureOptions
from beholder.studies.trial import Experiment, Outcome, Trial

DRAWS = 600
CHANGED = ("gender", "smiling", "lighting")
"""What is changed alone: a group, a cause with an interaction, and light, which has no effect."""
UPWARD = "noise adds up without its sign: above what was planted, and above 0 where nothing was"
EXTRA = ("man", "woman")
"""A wide smile has less effect for men than for women, by a planted amount."""


def effect_experiments() -> Iterator[Experiment]:
    """One world, drawn anew each time: ten identities in every combination of what is varied."""
    people, trials = _images()["seed"].n_unique(), []
    for contrast in _contrasts():
        truth = planted_effect(contrast.attribute, contrast.first, contrast.second)
        setting = f"{people} identities, {contrast.attribute} {contrast.first} over {contrast.second}"
        n = int(min((contrast.side == side).sum() for side in (1, -1)))
        trials.append(Trial("perception.causal_effect", setting, n, truth, effect=abs(truth)))
        trials.append(Trial("perception.absolute_difference", setting, n, abs(truth), exception=UPWARD))
    setting = f"{people} identities, smiling × gender, {' over '.join(EXTRA)}"
    n = _images().height // 2
    trials.append(Trial("perception.interaction", setting, n, -SMILE_BONUS, effect=SMILE_BONUS))
    yield Experiment("effects", tuple(trials), _draw)


@cache
def _images() -> pl.DataFrame:
    """The drawn design without its turned heads: a third of the pictures shows as much."""
    return pl.DataFrame(design()).filter(pl.col("pose") == 0)


@cache
def _contrasts() -> tuple[Contrast, ...]:
    return tuple(each for each in contrasts(_images()) if each.attribute in CHANGED)


def _draw(rng: np.random.Generator) -> Sequence[Outcome]:
    images = _images()
    scores = oracle_scores(images, rng, columns=1)
    options = MeasureOptions(draws=DRAWS, seed=int(rng.integers(2**31)))
    outcomes = []
    for contrast in _contrasts():
        estimate, absolute = effect(images, contrast, scores, options)
        outcomes += [_outcome(estimate), Outcome(float(absolute[0]))]
    extra = dict(interaction_estimates(images, "smiling", "gender", scores, options))
    return [*outcomes, _outcome(extra[EXTRA])]


def _outcome(estimate: Estimates) -> Outcome:
    return Outcome(*(float(part[0]) for part in (estimate.value, estimate.low, estimate.high, estimate.p_value)))
