"""Disparity's average precision in worlds of known truth: gaps of quality, and gaps of prevalence alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from beholder.metrics.intervals import difference_reach
from beholder.metrics.leave_one_out import left_out
from beholder.metrics.precision_gaps import shuffle_p_value, shuffled
from beholder.studies.disparity.confidence_trials import confidence_experiments
from beholder.studies.trial import Experiment, Outcome, Trial

DRAWS = 600
"""Shuffles of the labels."""
QUALITY = 1.5
"""How far the scores of images that show the concept are above the others, in standard deviations."""
PREVALENCE_ALONE = "a raw gap depends on the groups' prevalences, without any difference of quality"


def precision_experiments() -> Iterator[Experiment]:
    """Worlds that differ in the prevalences of both groups and in the difference of quality."""
    for n, prevalences, worse, share in (
        (400, (0.3, 0.3), 0.0, 1.0),
        (400, (0.4, 0.15), 0.0, 1.0),
        (400, (0.3, 0.3), 0.5, 1.0),
        (400, (0.3, 0.75), 0.5, 1.0),
        (1500, (0.3, 0.3), 0.5, 0.15),
    ):
        yield _gap(n, prevalences, worse, share)


def true_precision(prevalence: float, quality: float) -> float:
    """Average precision of an infinite ranking: the mean precision at the images that show the concept."""

    def precision(score: float) -> float:
        hits, misses = prevalence * ndtr(quality - score), (1 - prevalence) * ndtr(-score)
        return float(hits / (hits + misses) * norm.pdf(score - quality))

    return float(quad(precision, -8, quality + 9, limit=200)[0])


def precision_setting(n: int, prevalences: tuple[float, float], worse: float) -> str:
    """A world in words."""
    shown = " and ".join(f"{100 * p:g} %" for p in prevalences)
    return f"2 groups of {n}, shown by {shown}, quality {QUALITY:g} and {QUALITY - worse:g}"


def _gap(n: int, prevalences: tuple[float, float], worse: float, share: float) -> Experiment:
    """Recognition is worse in images of the second group, by `worse` standard deviations."""
    common = sum(prevalences) / 2
    raw, matched = (
        true_precision(first, QUALITY) - true_precision(second, QUALITY - worse)
        for first, second in (prevalences, (common, common))
    )
    setting = precision_setting(n, prevalences, worse)
    exception = PREVALENCE_ALONE if prevalences[0] != prevalences[1] else ""
    positives = round(n * min(prevalences))
    trials = (
        Trial("disparity.ap_gap", setting, positives, raw, effect=worse, exception=exception),
        Trial("disparity.ap_gap_matched", setting, positives, matched, effect=worse, curve=f"2 groups of {n}"),
    )
    return Experiment(f"precision {setting}", trials, partial(_draw, n, prevalences, worse), share)


def _draw(n: int, prevalences: tuple[float, float], worse: float, rng: np.random.Generator) -> Sequence[Outcome]:
    """As the study does it: images left out in turn, labels shuffled, the gap of the counts alone removed."""
    groups = np.repeat([0, 1], n)
    shows = rng.random(2 * n) < np.where(groups == 0, *prevalences)
    quality = np.where(groups == 0, QUALITY, QUALITY - worse)
    scores = (rng.standard_normal(2 * n) + quality * shows)[:, None]
    present, sets = shows[:, None], [groups == 0, groups == 1]
    alone = left_out(scores, present, sets, np.arange(2 * n))
    own, rest = shuffled(scores, present, groups, rng, DRAWS)
    outcomes = []
    for precision, first, second, matched in zip(alone, own, rest, (False, True), strict=True):
        gap, null = float(precision.value[0, 0] - precision.value[1, 0]), np.asarray(first[0, 0] - second[0, 0])
        shown = gap - float(null.mean()) if matched else gap
        reach = difference_reach(precision.reach(0, 0), precision.reach(1, 0))
        p_value = shuffle_p_value(gap, null)
        outcomes.append(Outcome(shown, shown - reach.below, shown + reach.above, p_value=p_value))
    return outcomes


def disparity_experiments() -> Iterator[Experiment]:
    """Every experiment of the study."""
    yield from precision_experiments()
    yield from confidence_experiments()
