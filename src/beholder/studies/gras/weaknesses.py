"""Known weaknesses of the measures, shown by the calibration trials."""

from __future__ import annotations

from collections.abc import Iterator

from beholder.studies.trial_summary import Summaries, Weakness


def weaknesses(summaries: Summaries) -> Iterator[Weakness]:
    """Those that the chosen trials can tell of."""
    for look in (_score_without_bias, _absolute_gaps):
        yield from look(summaries)


def _score_without_bias(summaries: Summaries) -> Iterator[Weakness]:
    plain, corrected = summaries.one("gras.bias_score"), summaries.one("gras.bias_score_corrected")
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


def _absolute_gaps(summaries: Summaries) -> Iterator[Weakness]:
    alike = summaries.where("gras.largest_gap", setting="gap 0 points")
    if alike:
        said = "; ".join(f"{100 * each.mean:.1f} points with {each.trial.setting.partition(',')[0]}" for each in alike)
        yield Weakness(
            "gras.largest_gap",
            "Absolute differences are biased upward",
            f"A largest gap cannot be negative, so where the true gap is 0 it comes out above it: {said}. It "
            "shrinks with images and grows with groups: read it beside its interval and p, never alone.",
            all(each.bias > 3 * each.bias_error for each in alike),
        )
