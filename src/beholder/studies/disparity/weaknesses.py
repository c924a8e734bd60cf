"""Known weaknesses of the measures, shown by the calibration trials."""

from __future__ import annotations

from collections.abc import Iterator

from beholder.studies.disparity.confidence_trials import confidence_setting
from beholder.studies.disparity.trials import precision_setting
from beholder.studies.trial_summary import Summaries, Weakness


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
