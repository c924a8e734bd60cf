"""Known weaknesses of the measures, found again in the repetitions and said in words with the numbers found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from beholder.calibration.summary import Summary


class Weakness(NamedTuple):
    """What a reader of a metric must know, and whether the repetitions bear it out."""

    metric: str
    title: str
    sentence: str
    found: bool


class Found:
    """Summaries to look things up in."""

    def __init__(self, summaries: list[Summary]) -> None:
        self._all = summaries

    def where(self, metric: str, *, kind: str = "", setting: str = "") -> list[Summary]:
        """Those of a metric and kind whose world is described so."""
        return [
            each
            for each in self._all
            if each.trial.metric == metric and each.trial.kind == kind and setting in each.trial.setting
        ]

    def one(self, metric: str, *, kind: str = "", setting: str = "") -> Summary | None:
        """The first of them, if there is one."""
        return next(iter(self.where(metric, kind=kind, setting=setting)), None)


def weaknesses(summaries: list[Summary]) -> list[Weakness]:
    """Those that the chosen experiments can tell of."""
    found = Found(summaries)
    return [weakness for look in LOOKS for weakness in look(found)]


def _score_without_bias(found: Found) -> Iterator[Weakness]:
    plain, corrected = found.one("gras.bias_score"), found.one("gras.bias_score_corrected")
    if plain and corrected:
        yield Weakness(
            "gras.bias_score",
            "GRAS's score is not 0 without bias",
            f"Where no group differs in anything it is {plain.mean:.1f} on average (spread over worlds: "
            f"{plain.spread:.1f}), for it counts a trait when any of five wordings has p ≤ 0.05; "
            "up to 22.6 where wordings are independent. "
            f"After correction it is {corrected.mean:.2f}.",
            plain.mean > 3 * plain.bias_error and plain.mean > 1,
        )


def _absolute_gaps(found: Found) -> Iterator[Weakness]:
    alike = found.where("gras.largest_gap", setting="gap 0 points")
    if alike:
        said = "; ".join(f"{100 * each.mean:.1f} points with {each.trial.setting.partition(',')[0]}" for each in alike)
        yield Weakness(
            "gras.largest_gap",
            "Absolute differences are biased upward",
            f"A largest gap cannot be negative, so where the true gap is 0 it comes out above it: {said}. It "
            "shrinks with images and grows with groups: read it beside its interval and p, never alone.",
            all(each.bias > 3 * each.bias_error for each in alike),
        )


def _noise_without_sign(found: Found) -> Iterator[Weakness]:
    absolute, causal = (
        found.one(f"perception.{name}", setting="lighting") for name in ("absolute_difference", "causal_effect")
    )
    if absolute and causal:
        yield Weakness(
            "perception.absolute_difference",
            "Absolute differences of matched pictures are noise as much as effect",
            f"Light does nothing in this world, and pictures that differ in it alone lie {100 * absolute.mean:.2f} "
            f"apart (× 100); with its sign the mean difference is {100 * causal.mean:+.2f}, and its interval covers 0 "
            f"in {100 * causal.coverage.value:.1f} of 100 worlds.",
            absolute.mean > 3 * absolute.bias_error and abs(causal.mean) < 0.1 * absolute.mean,
        )


def _prevalence(found: Found) -> Iterator[Weakness]:
    raw, matched = (found.one(f"disparity.{name}", setting="40 % and 15 %") for name in ("ap_gap", "ap_gap_matched"))
    if raw and matched:
        yield Weakness(
            "disparity.ap_gap",
            "Raw gaps of average precision follow prevalence",
            f"Recognised equally well, but shown by 40 % and by 15 % of two groups' images, a concept has a raw gap of "
            f"{100 * raw.mean:.1f} points; at matched prevalence it is {100 * matched.mean:+.1f}.",
            abs(raw.mean) > 10 * abs(matched.mean) or abs(raw.mean) > 0.1,
        )


def _sizes(found: Found) -> Iterator[Weakness]:
    unequal = found.one("disparity.ece_gap", setting="900 and 150")
    honest = found.one("disparity.miscalibration_gap", setting="900 and 150")
    if unequal and honest:
        yield Weakness(
            "disparity.ece_gap",
            "Gaps of calibration error follow the groups' sizes",
            f"Where every confidence is exactly right, groups of 900 and 150 images have a gap of "
            f"{100 * unequal.mean:+.1f} points: the small group looks worse calibrated by chance, and the interval "
            f"covers 0 in {100 * unequal.coverage.value:.0f} of 100 worlds. Miscalibration's gap is "
            f"{honest.mean:+.4f} and covered in {100 * honest.coverage.value:.0f}.",
            unequal.mean < -3 * unequal.bias_error,
        )


def _skewed_ratio(found: Found) -> Iterator[Weakness]:
    few, many = (found.one("apa.bias_ratio", setting=f"{who} men, b = 1, mean 0.15") for who in ("76", "100"))
    percentile = found.one("apa.bias_ratio", kind="percentile", setting="76 men, b = 1, mean 0.15")
    if few and many and percentile:
        yield Weakness(
            "apa.bias_ratio",
            "Ratios b are skewed, and with few women by much",
            f"Where b is 1 and belief is low (0.15), 24 women and 76 men give ratios of skewness {few.skewness:+.2f}: "
            f"their mean is {few.mean:.2f} and they spread by {few.spread:.2f} (100 and 100: {many.mean:.2f} and "
            f"{many.spread:.2f}). Percentiles of the draws cover in {100 * percentile.coverage.value:.1f} of 100, "
            f"studentised on the log scale in {100 * few.coverage.value:.1f}.",
            few.skewness > 0.3 and few.bias > many.bias,
        )


def _depth(found: Found) -> Iterator[Weakness]:
    depths = [each for k in (20, 100, 200) for each in found.where("perception.skew", kind=f"k = {k}")]
    if len(depths) > 1:
        said = ", ".join(f"{each.mean:+.2f} at {each.trial.kind}" for each in depths)
        yield Weakness(
            "perception.skew",
            "Skew@k depends on k",
            f"One and the same world of 400 ranked images has a skew of {said}: compare only at equal shares of the "
            "ranking.",
            depths[0].mean - depths[-1].mean > 3 * np.hypot(depths[0].bias_error, depths[-1].bias_error),
        )
    none = found.one("perception.ndkl", setting="difference 0")
    if none:
        yield Weakness(
            "perception.ndkl",
            "NDKL is not 0 without preference",
            f"A ranking of {2 * none.trial.n} images without any preference has {none.mean:.3f} nats on average: read "
            "it beside what shuffles give.",
            none.mean > 3 * none.bias_error,
        )


def _names(found: Found) -> Iterator[Weakness]:
    sizes = sorted(found.where("apa.identity_given_image"), key=lambda each: each.trial.n)
    if len(sizes) > 1:
        said = ", ".join(f"{100 * each.mean:.0f} % among {each.trial.setting}" for each in sizes)
        yield Weakness(
            "apa.identity_given_image",
            "Identity scores depend on the number of names",
            f"People known equally well are found with {said}: compare only among equally many names.",
            sizes[0].mean > sizes[-1].mean,
        )


def _samples(found: Found) -> Iterator[Weakness]:
    both, alone = (found.one("mean over prompts", kind=kind) for kind in ("images and prompts drawn", "images drawn"))
    if both and alone:
        yield Weakness(
            "mean over prompts",
            "Intervals over images say nothing about other prompts",
            f"Where prompts are a sample, intervals from images alone cover in {100 * alone.coverage.value:.0f} of 100 "
            f"worlds, drawing both in {100 * both.coverage.value:.0f}.",
            alone.coverage.value < 0.93,
        )
    people = found.one("apa.association", setting="3 pictures each")
    pictures = found.one("apa.association", kind="pictures as if people")
    if people and pictures:
        yield Weakness(
            "apa.association",
            "Pictures of one person are not new people",
            f"With three pictures of each of 100 people, intervals that take pictures for people cover in "
            f"{100 * pictures.coverage.value:.0f} of 100 worlds, by person in {100 * people.coverage.value:.1f}.",
            pictures.coverage.value < 0.93,
        )


LOOKS: tuple[Callable[[Found], Iterator[Weakness]], ...] = (
    _score_without_bias,
    _absolute_gaps,
    _noise_without_sign,
    _prevalence,
    _sizes,
    _skewed_ratio,
    _depth,
    _names,
    _samples,
)
