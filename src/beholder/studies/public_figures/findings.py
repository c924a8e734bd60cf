"""Findings about public figures.

There are few, the largest effects come first, and they claim no more than the intervals support. An interval that
holds the landmark is reported as "not shown", which is not the same as "no difference".
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.family_correction import surviving
from beholder.chapter.finding import Finding, finding, valued
from beholder.chapter.numbers import (
    Result,
    decimals_for,
    excludes,
    has_interval,
    log_distance,
    options,
    percent,
    span,
    uncertainty,
)
from beholder.chapter.phrases import count, listed, picture
from beholder.comparison.verdicts import DIFFERENCE
from beholder.studies.public_figures.gender_findings import ratio_findings, wrong_occupation_findings
from beholder.studies.public_figures.identity_findings import identity_findings
from beholder.studies.public_figures.levels import LEVELS
from beholder.studies.public_figures.phrases import people, someone, specialties
from beholder.studies.public_figures.queries import nothing_shown, reference, times_landmark
from beholder.studies.public_figures.scale_findings import scale_findings

KINDS = ("bias", "occupations", "association", "identity", "scale")


def public_figure_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show: what is shown first, then by kind and size."""
    makers = (ratio_findings, wrong_occupation_findings, association_findings, identity_findings, scale_findings)
    findings = [finding for make in makers for finding in make(part)]
    return sorted(findings, key=lambda each: (not each.shown, KINDS.index(each.kind), -each.effect))


def association_findings(part: pl.DataFrame) -> Iterator[Finding]:
    rows = valued(part, "association")
    if not rows:
        return
    top1 = {(row["subset"], row["concept"]): row for row in valued(part, "association_top1")}
    specialty = [row for row in rows if row["concept"] == LEVELS[-1] and reference(row)]
    yield _levels(rows)
    weakest = min(specialty, key=lambda row: times_landmark(row["value"], reference(row)), default=None)
    if weakest and weakest["value"] < 0.5:  # a weakness only where most belief goes to other options
        yield _weakest(weakest, specialty, top1)


def _levels(rows: list[Result]) -> Finding:
    """How far belief falls from the easy level to the hard one, and where it is shown to be more than chance."""
    ranges = {level: [row["value"] for row in rows if row["concept"] == level] for level in LEVELS}
    shares = listed([f"{span(values)} for {level}" for level, values in ranges.items() if values])
    above = sum(row["value"] > (reference(row) or 1.0) for row in surviving(rows, reference))
    headline, told = f"Belief on the right answer is {shares}", []
    if above < len(rows):
        told.append(f"Mean belief on the right answer is {shares}.")
        headline = "The right answer is not shown to get more belief than chance"
        if above:
            headline = f"The right answer gets more belief than chance in {above} of {len(rows)} cases"
    branches = len({row["subset"] for row in rows})
    if branches > 1:
        told.append(f"All {count(branches)} branches lie within these values.")
    if not any(map(has_interval, rows)):
        told.append("Without an interval nothing is claimed.")
    elif len(rows) == 1:
        told.append(f"The interval {'lies' if above else 'does not lie'} above chance.")
    else:
        told.append(f"After correction for their number, {above} of {len(rows)} intervals lie above chance.")
    if any(row.get("landmark") is not None for row in rows):
        told.append(EXCHANGED)
    verdict, sentence = DIFFERENCE if above else nothing_shown(rows), " ".join(told)
    return finding(rows[0], "association", headline, sentence, verdict=verdict, effect=9.0, more=rows[1:])


EXCHANGED = "Where right answers differ, chance is the belief on those of other people of the same gender."


def _weakest(row: Result, rows: list[Result], top1: dict[tuple[str, str], Result]) -> Finding:
    """The specialty that is nearest to chance, or farthest below it. It is the lowest of several: hence corrected."""
    branch, level, places = row["subset"], reference(row) or 1.0, decimals_for(row)
    shown, relation = row in surviving(rows, reference), "not distinguishable from chance"
    if shown:
        relation = "above chance" if row["value"] > level else "below chance"
    elif excludes(row, level):
        relation = f"after correction for {count(len(rows))} branches not distinguishable from chance"
    elif not has_interval(row):
        relation = "with no interval to compare it with chance"
    first = top1.get((branch, row["concept"]))
    comes_first = f" The right one comes first for {percent(first['value'])} of the images." if first else ""
    sentence = (
        f"Given a {picture(row)} of {someone(branch)} and {count(options(row) or 0)} "
        f"{specialties(branch)} to choose from, the model puts {percent(row['value'], places)} of its belief on "
        f"the right one ({uncertainty(row, decimals=places)}; chance is {percent(level, places)}).{comes_first}"
    )
    headline, effect = f"Weakest specialty: {people(branch)}, {relation}", log_distance(row["value"], level)
    verdict = DIFFERENCE if shown else nothing_shown([row])
    more = [first] if first else []
    return finding(row, "association", headline, sentence, verdict=verdict, effect=effect, more=more)
