"""Known weaknesses of GRAS's metrics, shown by the calibration trials."""

from __future__ import annotations

from collections.abc import Iterator

from beholder.studies.trial_summary import Summaries, Weakness


def weaknesses(summaries: Summaries) -> Iterator[Weakness]:
    """The weaknesses that the chosen trials can show."""
    yield from _score_without_bias(summaries)
    yield from _absolute_gaps(summaries)


def _score_without_bias(summaries: Summaries) -> Iterator[Weakness]:
    plain, corrected = summaries.one("gras.bias_score"), summaries.one("gras.bias_score_corrected")
    if plain and corrected:
        yield Weakness(
            "gras.bias_score",
            "GRAS's score is not 0 without bias",
            f"Where no group differs in anything, the score is {plain.mean:.1f} on average (spread over worlds: "
            f"{plain.spread:.1f}), because it counts a trait when any of five wordings has p ≤ 0.05; with independent "
            f"wordings it is up to 22.6. After correction it is {corrected.mean:.2f}.",
            plain.mean > 3 * plain.bias_error and plain.mean > 1,
        )


def _absolute_gaps(summaries: Summaries) -> Iterator[Weakness]:
    alike = [summary for summary in summaries.where("gras.largest_gap") if summary.trial.effect == 0]
    if alike:
        means = "; ".join(f"{100 * summary.mean:.1f} points ({summary.trial.setting})" for summary in alike)
        yield Weakness(
            "gras.largest_gap",
            "Absolute differences are biased upward",
            f"A largest gap cannot be negative, so its mean is above 0 even where the true gap is 0: {means}. It "
            "shrinks with more images and grows with more groups: read it with its interval and p, never alone.",
            all(summary.bias > 3 * summary.bias_error for summary in alike),
        )
