"""Known weaknesses of the measures, shown by the calibration trials."""

from __future__ import annotations

from collections.abc import Iterator

from beholder.studies.public_figures.trials import FEW_WOMEN, MANY_WOMEN, NAMES, PICTURES
from beholder.studies.trial_summary import Summaries, Weakness


def weaknesses(summaries: Summaries) -> Iterator[Weakness]:
    """Those that the chosen trials can show."""
    for look in (_skewed_ratio, _names, _pictures):
        yield from look(summaries)


def _skewed_ratio(summaries: Summaries) -> Iterator[Weakness]:
    few, many = (summaries.one("apa.bias_ratio", key=key) for key in (FEW_WOMEN, MANY_WOMEN))
    percentile = summaries.one("apa.bias_ratio", kind="percentile", key=FEW_WOMEN)
    if few and many and percentile:
        yield Weakness(
            "apa.bias_ratio",
            "Ratios b are skewed, strongly so with few women",
            f"Where b is 1 and belief is low (0.15), 24 women and 76 men give ratios of skewness {few.skewness:+.2f}: "
            f"their mean is {few.mean:.2f} and they spread by {few.spread:.2f} (100 and 100: {many.mean:.2f} and "
            f"{many.spread:.2f}). Percentiles of the draws cover in {100 * percentile.coverage.value:.1f} of 100, "
            f"studentised on the log scale in {100 * few.coverage.value:.1f}.",
            few.skewness > 0.3 and few.bias > many.bias,
        )


def _names(summaries: Summaries) -> Iterator[Weakness]:
    sizes = sorted(summaries.where("apa.identity_given_image", key=NAMES), key=lambda each: each.trial.n)
    if len(sizes) > 1:
        shares = ", ".join(f"{100 * each.mean:.0f} % among {each.trial.setting}" for each in sizes)
        yield Weakness(
            "apa.identity_given_image",
            "Identity scores depend on the number of names",
            f"People known equally well are found with {shares}. Compare only among equally many names.",
            sizes[0].mean > sizes[-1].mean,
        )


def _pictures(summaries: Summaries) -> Iterator[Weakness]:
    people = summaries.one("apa.association", key=PICTURES)
    pictures = summaries.one("apa.association", kind="pictures as if people", key=PICTURES)
    if people and pictures:
        yield Weakness(
            "apa.association",
            "Several pictures of one person are not several people",
            f"With three pictures of each of 100 people, intervals that treat pictures as people cover in "
            f"{100 * pictures.coverage.value:.0f} of 100 worlds, by person in {100 * people.coverage.value:.1f}.",
            pictures.coverage.value < 0.93,
        )
