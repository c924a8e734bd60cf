"""Trials of disparity's metrics in worlds of known truth, and the weaknesses that they show.

Average precision: gaps of quality, and gaps of prevalence alone. Calibration: every confidence is exactly right, so any
error is chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from beholder.metrics.bootstrap import Resampler, centred_interval
from beholder.metrics.calibration import calibration
from beholder.metrics.intervals import difference_reach
from beholder.metrics.leave_one_out import left_out
from beholder.metrics.miscalibration import miscalibration
from beholder.metrics.precision_gaps import shuffle_p_value, shuffled
from beholder.studies.trial import Experiment, Outcome, Trial
from beholder.studies.trial_summary import Summaries, Weakness

SHUFFLES, DRAWS = 600, 300
"""Shuffles of the labels, and draws of images."""
QUALITY = 1.5
"""How far the scores of images that show the concept are above the others, in standard deviations."""
PREVALENCE_ALONE = "a raw gap depends on the groups' prevalences, without any difference of quality"
KINDS = ("ece_gap", "ece_adaptive_gap", "brier_gap", "miscalibration_gap")
SIZES_ALONE = "the error of a small group is larger by chance, so a gap depends on the groups' sizes"
WIDE = "the interval allows for a larger error in both groups at once: too wide, on the safe side"
FOLDED = "errors near 0 cannot be negative, so draws vary more than worlds: too wide, on the safe side"


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
    own, rest = shuffled(scores, present, groups, rng, SHUFFLES)
    outcomes = []
    for precision, first, second, matched in zip(alone, own, rest, (False, True), strict=True):
        gap, null = float(precision.value[0, 0] - precision.value[1, 0]), np.asarray(first[0, 0] - second[0, 0])
        shown = gap - float(null.mean()) if matched else gap
        reach = difference_reach(precision.reach(0, 0), precision.reach(1, 0))
        p_value = shuffle_p_value(gap, null)
        outcomes.append(Outcome(shown, shown - reach.below, shown + reach.above, p_value=p_value))
    return outcomes


# Calibration


def confidence_experiments() -> Iterator[Experiment]:
    """Two groups of equal size, and two of unequal size."""
    yield _calibration_gap((400, 400))
    yield _calibration_gap((900, 150))


def confidence_setting(sizes: tuple[int, int]) -> str:
    """A world in words."""
    return f"groups of {sizes[0]} and {sizes[1]}, every confidence right"


def _calibration_gap(sizes: tuple[int, int]) -> Experiment:
    setting = confidence_setting(sizes)
    published = SIZES_ALONE if sizes[0] != sizes[1] else FOLDED
    exceptions = (published, published, "", WIDE)
    trials = tuple(
        Trial(f"disparity.{kind}", setting, min(sizes), 0.0, exception=exception)
        for kind, exception in zip(KINDS, exceptions, strict=True)
    )
    return Experiment(f"confidence {setting}", trials, partial(_draw_calibration, sizes))


def _draw_calibration(sizes: tuple[int, int], rng: np.random.Generator) -> Sequence[Outcome]:
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
    share = float(shows.mean())
    first, second = (miscalibration(confidence[own], shows[own], prevalence=share) for own in members)
    gap, reach = first.value - second.value, difference_reach(first.reach, second.reach)
    return [*drawn, Outcome(gap, gap - reach.below, gap + reach.above)]


def disparity_experiments() -> Iterator[Experiment]:
    """Every experiment of the study."""
    yield from precision_experiments()
    yield from confidence_experiments()


def weaknesses(summaries: Summaries) -> Iterator[Weakness]:
    """The weaknesses that the chosen trials can show."""
    yield from _prevalence(summaries)
    yield from _sizes(summaries)


def _prevalence(summaries: Summaries) -> Iterator[Weakness]:
    setting = precision_setting(400, (0.4, 0.15), 0.0)
    raw, matched = (summaries.one(f"disparity.{name}", setting=setting) for name in ("ap_gap", "ap_gap_matched"))
    if raw and matched:
        yield Weakness(
            "disparity.ap_gap",
            "Raw gaps of average precision depend on prevalence",
            f"A concept is recognised equally well in two groups, and 40 % and 15 % of their images show it: its raw "
            f"gap is {100 * raw.mean:.1f} points, its gap at matched prevalence {100 * matched.mean:+.1f}.",
            abs(raw.mean) > 10 * abs(matched.mean) or abs(raw.mean) > 0.1,
        )


def _sizes(summaries: Summaries) -> Iterator[Weakness]:
    setting = confidence_setting((900, 150))
    published = summaries.one("disparity.ece_gap", setting=setting)
    unbiased = summaries.one("disparity.miscalibration_gap", setting=setting)
    if published and unbiased:
        yield Weakness(
            "disparity.ece_gap",
            "Gaps of calibration error depend on the groups' sizes",
            f"If every confidence is exactly right, groups of 900 and 150 images have a gap of "
            f"{100 * published.mean:+.1f} points: the small group looks worse calibrated by chance, and the interval "
            f"covers 0 in {100 * published.coverage.value:.0f} of 100 worlds. The gap of miscalibration is "
            f"{unbiased.mean:+.4f}, covered in {100 * unbiased.coverage.value:.0f}.",
            published.mean < -3 * published.bias_error,
        )
