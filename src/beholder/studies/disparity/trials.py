"""Disparity's average precision in worlds of known truth: gaps of quality, and gaps that are prevalence alone."""

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
"""How far the scores of pictures that show the concept lie above the others', in standard deviations."""
PREVALENCE_ALONE = "a raw gap follows the groups' prevalences, without any difference of quality"


def precision_experiments() -> Iterator[Experiment]:
    """Every world of recognition: prevalences of both groups, and by how much quality differs."""
    for n, prevalences, worse, share in (
        (400, (0.3, 0.3), 0.0, 1.0),
        (400, (0.4, 0.15), 0.0, 1.0),
        (400, (0.3, 0.3), 0.5, 1.0),
        (400, (0.3, 0.75), 0.5, 1.0),
        (1500, (0.3, 0.3), 0.5, 0.15),
    ):
        yield _gap(n, prevalences, worse, share)


def true_precision(prevalence: float, quality: float) -> float:
    """Average precision of an endless ranking: the mean precision at the pictures that show the concept."""

    def precision(score: float) -> float:
        hits, misses = prevalence * ndtr(quality - score), (1 - prevalence) * ndtr(-score)
        return float(hits / (hits + misses) * norm.pdf(score - quality))

    return float(quad(precision, -8, quality + 9, limit=200)[0])


def _gap(n: int, prevalences: tuple[float, float], worse: float, share: float) -> Experiment:
    """The second group's pictures are told apart by `worse` less."""
    common = sum(prevalences) / 2
    raw, matched = (
        true_precision(first, QUALITY) - true_precision(second, QUALITY - worse)
        for first, second in (prevalences, (common, common))
    )
    shown = " and ".join(f"{100 * p:g} %" for p in prevalences)
    setting = f"2 groups of {n}, shown by {shown}, quality {QUALITY:g} and {QUALITY - worse:g}"
    unequal = prevalences[0] != prevalences[1]
    said = PREVALENCE_ALONE if unequal else ""
    positives = round(n * min(prevalences))
    trials = (
        Trial("disparity.ap_gap", setting, positives, raw, effect=worse, exception=said),
        Trial("disparity.ap_gap_matched", setting, positives, matched, effect=worse),
    )
    return Experiment(f"precision {setting}", trials, partial(_draw, n, prevalences, worse), share)


def _draw(n: int, prevalences: tuple[float, float], worse: float, rng: np.random.Generator) -> Sequence[Outcome]:
    """As the benchmark does it: pictures left out in turn, the counts' own gap taken off, labels shuffled."""
    groups = np.repeat([0, 1], n)
    shows = rng.random(2 * n) < np.where(groups == 0, *prevalences)
    quality = np.where(groups == 0, QUALITY, QUALITY - worse)
    scores = (rng.standard_normal(2 * n) + quality * shows)[:, None]
    present, sets = shows[:, None], [groups == 0, groups == 1]
    alone = left_out(scores, present, sets, np.arange(2 * n))
    own, rest = shuffled(scores, present, groups, rng, DRAWS)
    outcomes = []
    for found, first, second, taken_off in zip(alone, own, rest, (False, True), strict=True):
        gap, null = float(found.value[0, 0] - found.value[1, 0]), np.asarray(first[0, 0] - second[0, 0])
        shown = gap - float(null.mean()) if taken_off else gap
        reach = difference_reach(found.reach(0, 0), found.reach(1, 0))
        p_value = shuffle_p_value(gap, null)
        outcomes.append(Outcome(shown, shown - reach.below, shown + reach.above, p_value=p_value))
    return outcomes


def disparity_experiments() -> Iterator[Experiment]:
    """Every experiment of the study."""
    yield from precision_experiments()
    yield from confidence_experiments()
