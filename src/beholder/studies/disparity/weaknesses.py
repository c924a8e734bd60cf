"""Known weaknesses of the measures, shown by the calibration trials."""

from __future__ import annotations

from collections.abc import Iterator

from beholder.studies.trial_summary import Summaries, Weakness


def weaknesses(summaries: Summaries) -> Iterator[Weakness]:
    """Those that the chosen trials can tell of."""
    for look in (_prevalence, _sizes):
        yield from look(summaries)


def _prevalence(summaries: Summaries) -> Iterator[Weakness]:
    raw, matched = (
        summaries.one(f"disparity.{name}", setting="40 % and 15 %") for name in ("ap_gap", "ap_gap_matched")
    )
    if raw and matched:
        yield Weakness(
            "disparity.ap_gap",
            "Raw gaps of average precision follow prevalence",
            f"Recognised equally well, but shown by 40 % and by 15 % of two groups' images, a concept has a raw gap of "
            f"{100 * raw.mean:.1f} points; at matched prevalence it is {100 * matched.mean:+.1f}.",
            abs(raw.mean) > 10 * abs(matched.mean) or abs(raw.mean) > 0.1,
        )


def _sizes(summaries: Summaries) -> Iterator[Weakness]:
    unequal = summaries.one("disparity.ece_gap", setting="900 and 150")
    honest = summaries.one("disparity.miscalibration_gap", setting="900 and 150")
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
