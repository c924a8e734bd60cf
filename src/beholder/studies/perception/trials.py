"""Trials of the metrics in worlds of known truth, and the weaknesses that they show.

One family of worlds has judgements of two groups: gaps, SC-WEAT, markedness, Skew@k, NDKL, with one image a person or
with several, and with groups that are not equally large. The other is the drawn design: causal effects, absolute
differences, interactions, pairs. `several_images.py` has the worlds in which people have several images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.optimize import brentq
from scipy.special import ndtr

from beholder.glasshouse.design import design
from beholder.glasshouse.oracle import Levels, Noise, Oracle
from beholder.metrics.clustered import Estimates
from beholder.metrics.matched import combined, seed_mean
from beholder.metrics.ranking import descending, ndkl, skew_at_k
from beholder.studies.large_draws import Draw, large_draws
from beholder.studies.perception.bias import markedness_rows, sc_weat_rows
from beholder.studies.perception.curves import gap_rows
from beholder.studies.perception.design import Contrast, contrasts, matched_effect, rises_by_group
from beholder.studies.perception.oracle import SMILE_BONUS, oracle_scores, planted_effect
from beholder.studies.perception.prompts import POSITIVE, Dimension
from beholder.studies.perception.ranking import ranking_rows
from beholder.studies.perception.scores import Groups, Judged, group_by
from beholder.studies.perception.several_images import several_image_experiments
from beholder.studies.study import MeasureOptions
from beholder.studies.trial import Experiment, Outcome, Trial, outcome
from beholder.studies.trial_summary import Summaries, Weakness

WORDS = ("warm", "friendly", "honest", "likable")
DIMENSION = Dimension("warmth", "Warmth", WORDS, POSITIVE)
NOISE = Noise(image=1.0, cell=1.0)
MARKED = 0.8
"""How far the neutral prompt is below a group's own word, in units of the noise."""
DEPTHS = (20, 100, 200)
DRAWS = 400
MEN, WOMEN = "man", "woman"
FOLDED = "a divergence near its least varies less over data sets than over halves of one: too wide, on the safe side"


def perception_experiments() -> Iterator[Experiment]:
    """Every experiment of the study."""
    for n, effect, share in ((100, 0.0, 1.0), (100, 0.25, 1.0), (100, 0.5, 1.0), (200, 0.0, 1.0), (200, 0.25, 0.4)):
        yield _judgements(n, effect, share)
    yield _depths(0.5)
    yield from several_image_experiments()
    yield from effect_experiments()


def _judgements(n: int, effect: float, share: float) -> Experiment:
    setting = f"2 groups of {n}, difference {effect:g}"
    spread = np.sqrt(NOISE.image**2 + NOISE.cell**2)
    size = effect / np.sqrt(spread**2 + effect**2 / 4)
    k, ranked = 100, 2 * n
    deep = "the top is half of all that is ranked: too wide, on the safe side" if 2 * k >= ranked else ""
    divergence = large_draws(Path(__file__).parent)[f"ndkl {n} {effect:g}"]
    trials = (
        Trial("perception.gap", setting, n, effect, effect=effect, curve=f"2 groups of {n}"),
        Trial("perception.sc_weat", setting, n, float(size), effect=effect),
        Trial("perception.markedness", setting, n, 100 * marked_share(), kind="share of a group"),
        Trial("perception.skew", f"{setting}, k = {k}", n, true_skew(effect, k / ranked), effect, exception=deep),
        Trial("perception.ndkl", setting, n, divergence.value, effect, "", divergence.error, exception=FOLDED),
    )
    return Experiment(f"judgements {setting}", trials, partial(_draw_judgements, n, effect), share)


def marked_share() -> float:
    """The share of images that the neutral prompt fits better than their own word: both have the cells' noise."""
    return float(ndtr(-MARKED / (NOISE.cell * np.sqrt(2))))


def true_skew(effect: float, top: float) -> float:
    """ln(share of men among the highest `top` of all / one half) where men score `effect` higher, in a large ranking.

    A ranking is by the mean of the words, whose noise is that of the image and a part of the cells'.
    """
    spread = np.sqrt(NOISE.image**2 + NOISE.cell**2 / len(WORDS))

    def above(threshold: float, shift: float) -> float:
        return float(ndtr((shift - threshold) / spread))

    threshold = float(brentq(lambda t: (above(t, effect) + above(t, 0.0)) / 2 - top, -20, 20))
    men, women = above(threshold, effect), above(threshold, 0.0)
    return float(np.log(men / (men + women) / 0.5))


ASKED = (*WORDS, "male", "female", "")
"""Words, the groups' own words, and the neutral prompt, which scores lower."""
LEVELS = Levels(np.array([[0.0]] * (len(ASKED) - 1) + [[-MARKED]]))
TOUCHED = np.array([word in WORDS for word in ASKED])


def judged_world(n: int, effect: float, rng: np.random.Generator) -> Judged:
    """Men, then women; men score `effect` higher on every word of the dimension."""
    oracle = Oracle(effects={"gender": {MEN: effect}}, noise=NOISE)
    labels = {"gender": np.repeat([MEN, WOMEN], n)}
    cells = oracle.latent(labels, LEVELS, rng, touched=TOUCHED)[:, :, 0]
    cosine, neutral = cells[:, :-1], cells[:, -1]
    images = pl.DataFrame({"image_id": [str(i) for i in range(2 * n)], **labels})
    return Judged(images, list(ASKED[:-1]), cosine, cosine - neutral[:, None], neutral, (DIMENSION,), "cosine", {})


def _draw_judgements(n: int, effect: float, rng: np.random.Generator) -> Sequence[Outcome]:
    judged = judged_world(n, effect, rng)
    groups = Groups("gender", [MEN, WOMEN], np.repeat([0, 1], n))
    options = MeasureOptions(draws=DRAWS, seed=int(rng.integers(2**31)))
    gap = next(row for row in gap_rows(judged, options) if row.subset == "gender")
    weat = next(iter(sc_weat_rows(judged, [groups], options)))
    mark = next(iter(markedness_rows(judged, groups, options)))
    ranked = list(ranking_rows(judged, [groups], options))
    skew = next(row for row in ranked if row.metric == "perception.skew" and row.group == MEN)
    ndkl = next(row for row in ranked if row.metric == "perception.ndkl")
    return [outcome(row) for row in (gap, weat, mark, skew, ndkl)]


# How deep the top is


def _depths(effect: float) -> Experiment:
    n, world = 200, f"2 groups of 200, difference {effect:g}"
    trials = tuple(
        Trial("perception.skew", f"{world}, k = {k}", n, true_skew(effect, k / (2 * n)), effect, f"k = {k}")
        for k in DEPTHS
    )
    return Experiment("depths", trials, partial(_draw_depths, n, effect), 0.5)


def _draw_depths(n: int, effect: float, rng: np.random.Generator) -> Sequence[Outcome]:
    judged = judged_world(n, effect, rng)
    order = descending(judged.by_dimension(judged.cosine))
    codes = np.repeat([0, 1], n)
    return [Outcome(float(skew_at_k(codes[order], np.array([0.5, 0.5]), k)[0, 0])) for k in DEPTHS]


def _divergence(n: int, effect: float, draws: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    codes = np.repeat([0, 1], n)
    spread = np.sqrt(NOISE.image**2 + NOISE.cell**2 / len(WORDS))
    scores = spread * rng.standard_normal((draws, 2 * n)) + effect * (codes == 0)
    return ndkl(codes[np.argsort(-scores, axis=1)], np.array([0.5, 0.5]))


LARGE_DRAWS: dict[str, Draw] = {
    f"ndkl {n} {effect:g}": partial(_divergence, n, effect)
    for n, effect in ((100, 0.0), (100, 0.25), (100, 0.5), (200, 0.0), (200, 0.25))
}
"""How the values of large_draws.json are drawn."""


# Effects in the drawn design, where every effect is planted

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
    yield Experiment("effects", tuple(trials), _draw_effects)


@cache
def _images() -> pl.DataFrame:
    """The drawn design without its turned heads: a third of the pictures shows as much."""
    return pl.DataFrame(design()).filter(pl.col("pose") == 0)


@cache
def _contrasts() -> tuple[Contrast, ...]:
    return tuple(each for each in contrasts(_images()) if each.attribute in CHANGED)


def _draw_effects(rng: np.random.Generator) -> Sequence[Outcome]:
    images = _images()
    scores, outcomes = oracle_scores(images, rng, columns=1), []
    for contrast in _contrasts():
        found = matched_effect(images, contrast, scores)
        assert found is not None  # every contrast has matched sets in the drawn design
        outcomes += [_outcome(seed_mean(found[0])), Outcome(float(found[1][0]))]
    rises = rises_by_group(images, "smiling", group_by(images, ("gender",)), scores)
    extra = combined([rises[name] for name in EXTRA], np.array([1.0, -1.0]))
    return [*outcomes, _outcome(seed_mean(extra))]


def _outcome(estimate: Estimates) -> Outcome:
    return Outcome(*(float(part[0]) for part in (estimate.value, estimate.low, estimate.high, estimate.p_value)))


# Known weaknesses of the measures, shown by these trials


def weaknesses(summaries: Summaries) -> Iterator[Weakness]:
    """The weaknesses that the chosen trials can show."""
    for look in (_noise_without_sign, _depth):
        yield from look(summaries)


def _noise_without_sign(summaries: Summaries) -> Iterator[Weakness]:
    absolute, causal = (
        next((each for each in summaries.where(f"perception.{name}") if each.trial.truth == 0), None)
        for name in ("absolute_difference", "causal_effect")
    )
    if absolute and causal:
        yield Weakness(
            "perception.absolute_difference",
            "Absolute differences of matched pictures are noise as much as effect",
            "Light has no effect in this world. Still, pictures that differ in light alone are "
            f"{100 * absolute.mean:.2f} apart (× 100). With its sign the mean difference is {100 * causal.mean:+.2f}, "
            f"and its interval covers 0 in {100 * causal.coverage.value:.1f} of 100 worlds.",
            absolute.mean > 3 * absolute.bias_error and abs(causal.mean) < 0.1 * absolute.mean,
        )


def _depth(summaries: Summaries) -> Iterator[Weakness]:
    depths = [each for k in (20, 100, 200) for each in summaries.where("perception.skew", kind=f"k = {k}")]
    if len(depths) > 1:
        skews = ", ".join(f"{each.mean:+.2f} at {each.trial.kind}" for each in depths)
        yield Weakness(
            "perception.skew",
            "Skew@k depends on k",
            f"One and the same world of 400 ranked images has a skew of {skews}: compare only at equal shares of the "
            "ranking.",
            depths[0].mean - depths[-1].mean > 3 * np.hypot(depths[0].bias_error, depths[-1].bias_error),
        )
    none = next((each for each in summaries.where("perception.ndkl") if each.trial.effect == 0), None)
    if none:
        yield Weakness(
            "perception.ndkl",
            "NDKL is not 0 without preference",
            f"A ranking of {2 * none.trial.n} images without any preference has {none.mean:.3f} nats on average: "
            "compare it with what shuffles give.",
            none.mean > 3 * none.bias_error,
        )
