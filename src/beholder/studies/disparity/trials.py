"""Trials of disparity's metrics in worlds of known truth, and the weaknesses that they show.

Average precision: gaps of quality, and gaps of prevalence alone. Calibration: every confidence is exactly right, so any
error is chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.integrate import quad
from scipy.special import expit, logit, ndtr
from scipy.stats import norm

from beholder.datasets.dataset import Dataset
from beholder.metrics.bootstrap import Resampler, centred_interval
from beholder.metrics.calibration import calibration
from beholder.metrics.intervals import difference_reach
from beholder.metrics.leave_one_out import left_out
from beholder.metrics.miscalibration import miscalibration
from beholder.metrics.precision_gaps import shuffle_p_value, shuffled
from beholder.studies.disparity.alignment import agreement_rows
from beholder.studies.disparity.confidence import MatchedCalibration
from beholder.studies.disparity.gaps import Gaps, find_gaps, gap_rows
from beholder.studies.disparity.scores import Cells, ConceptScores
from beholder.studies.study import MeasureOptions
from beholder.studies.trial import Experiment, Outcome, Trial, outcome
from beholder.studies.trial_summary import Summaries, Weakness

SHUFFLES, DRAWS = 600, 300
"""Shuffles of the labels, and draws of images."""
QUALITY = 1.5
"""How far the scores of images that show the concept are above the others, in standard deviations."""
PREVALENCE_ALONE = "a raw gap depends on the groups' prevalences, without any difference of quality"
KINDS = ("ece_gap", "ece_adaptive_gap", "brier_gap", "miscalibration_gap")
SIZES_ALONE = "the error of a small group is larger by chance, so a gap depends on the groups' sizes"
WIDE = "the interval allows for a larger error in both groups at once: too wide, on the safe side"
LUCKIEST = "the widest of several gaps is the luckiest: an interval for one gap covers it too seldom"
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


# Many concepts at once, in groups of unequal size


MANY = 10
"""Concepts of a world with many."""
POOLS = (600, 200)
SHOWN_BY = ((0.1, 0.3), (0.3, 0.1), (0.2, 0.2), (0.15, 0.4), (0.4, 0.15))
"""How often the two groups show a concept, concept after concept."""
HARD = 0.7
"""How much harder than others an image can be, in standard deviations: for all concepts alike."""
OPTIONS = MeasureOptions(draws=200)


class World(NamedTuple):
    """Scores and what the images show, of two groups."""

    data: ConceptScores
    confidence: Cells


def many_setting() -> str:
    """A world in words."""
    return f"{MANY} concepts, groups of {POOLS[0]} and {POOLS[1]}, unequal prevalences, nothing to find"


def many_experiments() -> Iterator[Experiment]:
    """Nothing to find, with unequal pools and prevalences; then one gap that is the same for all concepts."""
    made = (
        ("mean_ap_gap_matched", "", ""),
        ("gap_spread", "", ""),
        ("gaps_shown", "any concept", ""),
        ("ap_gap_simultaneous", "the widest", ""),
        ("word_agreement", "", ""),
        ("miscalibration_gap", "", WIDE),
        ("miscalibration_gap", "any concept", ""),
    )
    trials = tuple(
        Trial(f"disparity.{name}", many_setting(), min(POOLS), 0.0, kind=kind, family="any" in kind, exception=why)
        for name, kind, why in made
    )
    yield Experiment(f"many {many_setting()}", trials, _draw_many, 0.4)
    yield _equal_gaps()


def _equal_gaps() -> Experiment:
    """Every concept has the same true gap, so the widest is the luckiest: does its interval hold the truth?"""
    worse, share = 0.5, 0.3
    truth = true_precision(share, QUALITY) - true_precision(share, QUALITY - worse)
    setting = f"{MANY} concepts with equal gaps, groups of {POOLS[0]} and {POOLS[1]}"
    names = (
        ("ap_gap_matched", "the widest", LUCKIEST),
        ("ap_gap_simultaneous", "the widest", ""),
        ("mean_ap_gap_matched", "", ""),
    )
    trials = tuple(
        Trial(f"disparity.{name}", setting, min(POOLS), truth, effect=worse, kind=kind, exception=why)
        for name, kind, why in names
    )
    return Experiment(f"many {setting}", trials, partial(_draw_equal, worse, share), 0.4)


def world(rng: np.random.Generator, shares: Sequence[tuple[float, float]], worse: float, hard: float) -> World:
    """Scores that do not know the group, but for `worse`; confidence is right for all images together."""
    groups = np.repeat([0, 1], POOLS)
    often = np.array(shares)[:, groups].T
    present = rng.random(often.shape) < often
    quality = QUALITY - worse * groups[:, None] + hard * rng.standard_normal((len(groups), 1))
    scores = rng.standard_normal(present.shape) + quality * present
    share = present.mean(axis=0)
    spread = 1 + hard**2  # of the images that show it; so its likelihood ratio is that of two normal curves
    ratio = (scores**2 - (scores - QUALITY) ** 2 / spread - np.log(spread)) / 2
    names = np.arange(len(groups)).astype(str)
    images = pl.DataFrame({"image_id": names, "uri": names})
    concepts = [str(number) for number in range(present.shape[1])]
    source = Dataset("a world of the oracle", "", "", images)
    data = ConceptScores(images, concepts, scores, present, ["a", "b"], groups, "score", False, source)
    return World(data, expit(logit(share) + ratio))


def _draw_many(rng: np.random.Generator) -> Sequence[Outcome]:
    """As the study does it, with a random order of the concepts' words."""
    shares = [SHOWN_BY[number % len(SHOWN_BY)] for number in range(MANY)]
    data, confidence = world(rng, shares, 0.0, HARD)
    options = replace(OPTIONS, seed=int(rng.integers(2**32)))
    gaps, pair = find_gaps(data, options), data.pairs[0]
    rows = {row.metric: row for row in gap_rows(gaps) if row.concept is None}
    mean, width = (rows[f"disparity.{name}"] for name in ("mean_ap_gap_matched", "gap_spread"))
    shown = gaps.shown(pair)
    values = gaps.gap(pair, matched=True)
    near = np.linspace(-1, 1, MANY)[rng.permutation(MANY)]
    words = next(agreement_rows(near, values, gaps.shuffles(pair, matched=True), "ap_gap_matched"))
    matched = MatchedCalibration(data, confidence, options)
    return [
        outcome(mean),
        Outcome(np.nan, p_value=outcome(width).p_value),
        Outcome(np.nan, p_value=float(not shown.any())),
        _widest(gaps, level=gaps.level_of_all(pair)),
        Outcome(np.nan, p_value=outcome(words).p_value),
        _calibration_outcome(matched),
        Outcome(np.nan, p_value=float(np.nanmin(matched.adjusted))),
    ]


def _calibration_outcome(matched: MatchedCalibration) -> Outcome:
    pair = matched.data.pairs[0]
    gap, reach = float(matched.gap(pair)[0]), matched.reach(pair, 0)
    return Outcome(gap, gap - reach.below, gap + reach.above, p_value=float(matched.p_values[0, 0]))


def _widest(gaps: Gaps, *, level: float = 0.95) -> Outcome:
    pair = gaps.data.pairs[0]
    values = gaps.gap(pair, matched=True)
    column = int(np.nanargmax(np.abs(values)))
    low, high = gaps.interval(pair, column, matched=True, level=level)
    return Outcome(float(values[column]), low, high)


def _draw_equal(worse: float, share: float, rng: np.random.Generator) -> Sequence[Outcome]:
    data, _ = world(rng, [(share, share)] * MANY, worse, 0.0)
    gaps = find_gaps(data, replace(OPTIONS, seed=int(rng.integers(2**32))))
    mean = next(row for row in gap_rows(gaps) if row.metric == "disparity.mean_ap_gap_matched")
    return [_widest(gaps), _widest(gaps, level=gaps.level_of_all(data.pairs[0])), outcome(mean)]


def disparity_experiments() -> Iterator[Experiment]:
    """Every experiment of the study."""
    yield from precision_experiments()
    yield from confidence_experiments()
    yield from many_experiments()


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
