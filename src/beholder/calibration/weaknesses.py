"""Known weaknesses of the measures, found again in the repetitions and stated with the numbers found."""

from __future__ import annotations

from collections.abc import Iterator

from beholder.studies import STUDIES
from beholder.studies.trial_summary import Summaries, Summary, Weakness


def weaknesses(summaries: list[Summary]) -> list[Weakness]:
    """Those that the chosen experiments can tell of, study by study."""
    known = Summaries(summaries)
    looks = [look for study in STUDIES.values() if (look := study.part("weaknesses"))]
    return [weakness for look in (*looks, _samples) for weakness in look(known)]


def _samples(summaries: Summaries) -> Iterator[Weakness]:
    both, alone = (
        summaries.one("mean over prompts", kind=kind) for kind in ("images and prompts drawn", "images drawn")
    )
    if both and alone:
        yield Weakness(
            "mean over prompts",
            "Intervals over images say nothing about other prompts",
            f"Where prompts are a sample, intervals from images alone cover in {100 * alone.coverage.value:.0f} of 100 "
            f"worlds, drawing both in {100 * both.coverage.value:.0f}.",
            alone.coverage.value < 0.93,
        )
