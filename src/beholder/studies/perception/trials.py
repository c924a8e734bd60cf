"""Trials of the metrics in worlds of known truth: gaps, SC-WEAT, markedness, Skew@k, NDKL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.optimize import brentq
from scipy.special import ndtr

from beholder.glasshouse.oracle import Levels, Noise, Oracle
from beholder.metrics.ranking import descending, ndkl, skew_at_k
from beholder.studies.large_draws import Draw, large_draws
from beholder.studies.perception.bias import markedness_rows, ranking_rows, sc_weat_rows
from beholder.studies.perception.curves import gap_rows
from beholder.studies.perception.effect_trials import effect_experiments
from beholder.studies.perception.prompts import POSITIVE, Dimension
from beholder.studies.perception.scores import Groups, Judged
from beholder.studies.study import MeasureOptions
from beholder.studies.trial import Experiment, Outcome, Trial, outcome

WORDS = ("warm", "friendly", "honest", "likable")
DIMENSION = Dimension("warmth", "Warmth", WORDS, POSITIVE)
NOISE = Noise(image=1.0, cell=1.0)
MARKED = 0.8
"""How far the neutral prompt is below a group's own word, in units of the noise."""
DEPTHS = (20, 100, 200)
DRAWS, SHUFFLES = 400, 40
MEN, WOMEN = "man", "woman"
FOLDED = "a divergence near its least varies less over data sets than over halves of one: too wide, on the safe side"


def judgement_experiments() -> Iterator[Experiment]:
    """Every world of judgements."""
    for n, effect, share in ((100, 0.0, 1.0), (100, 0.25, 1.0), (100, 0.5, 1.0), (200, 0.0, 1.0), (200, 0.25, 0.4)):
        yield _judgements(n, effect, share)
    yield _depths(0.5)


def _judgements(n: int, effect: float, share: float) -> Experiment:
    setting = f"2 groups of {n}, difference {effect:g}"
    spread = np.sqrt(NOISE.image**2 + NOISE.cell**2)
    size = effect / np.sqrt(spread**2 + effect**2 / 4)
    k, ranked = (100 if n >= 100 else n // 2), 2 * n
    deep = "the top is half of all that is ranked: too wide, on the safe side" if 2 * k >= ranked else ""
    divergence = large_draws(Path(__file__).parent)[f"ndkl {n} {effect:g}"]
    trials = (
        Trial("perception.gap", setting, n, effect, effect=effect, curve=f"2 groups of {n}"),
        Trial("perception.sc_weat", setting, n, float(size), effect=effect),
        Trial("perception.markedness", setting, n, 100 * marked_share(), kind="share of a group"),
        Trial(
            "perception.skew", f"{setting}, k = {k}", n, true_skew(effect, k / ranked), effect=effect, exception=deep
        ),
        Trial(
            "perception.ndkl",
            setting,
            n,
            divergence.value,
            effect=effect,
            truth_error=divergence.error,
            exception=FOLDED,
        ),
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
    options = MeasureOptions(draws=DRAWS, permutations=SHUFFLES, seed=int(rng.integers(2**31)))
    gap = next(row for row in gap_rows(judged) if row.subset == "gender")
    weat = next(iter(sc_weat_rows(judged, groups, options)))
    mark = next(iter(markedness_rows(judged, groups, options)))
    ranked = list(ranking_rows(judged, [groups], options))
    skew = next(row for row in ranked if row.metric == "perception.skew" and row.group == MEN)
    ndkl = next(row for row in ranked if row.metric == "perception.ndkl")
    return [outcome(row) for row in (gap, weat, mark, skew, ndkl)]


# How deep the top is


def _depths(effect: float) -> Experiment:
    n = 200
    trials = tuple(
        Trial(
            "perception.skew",
            f"2 groups of {n}, difference {effect:g}, k = {k}",
            n,
            true_skew(effect, k / (2 * n)),
            effect=effect,
            kind=f"k = {k}",
        )
        for k in DEPTHS
    )
    return Experiment("depths", trials, partial(_draw_depths, n, effect), 0.5)


def _draw_depths(n: int, effect: float, rng: np.random.Generator) -> Sequence[Outcome]:
    judged = judged_world(n, effect, rng)
    order = descending(judged.by_dimension(judged.cosine))
    codes = np.repeat([0, 1], n)
    return [Outcome(float(skew_at_k(codes[order], np.array([0.5, 0.5]), k)[0, 0])) for k in DEPTHS]


def perception_experiments() -> Iterator[Experiment]:
    """Every experiment of the study."""
    yield from judgement_experiments()
    yield from effect_experiments()


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
