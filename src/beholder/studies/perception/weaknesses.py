"""Known weaknesses of the measures, shown by the calibration trials."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from beholder.studies.trial_summary import Summaries, Weakness


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
