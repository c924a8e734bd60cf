"""Findings about public figures: few, the largest effects first. Verdicts are those of the comparison."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding, valued, verdict_of_rows
from beholder.chapter.numbers import Result, chance, decimals_for, log_distance, options, percent, span, uncertainty
from beholder.chapter.phrases import count, listed, picture
from beholder.chapter.queries import deciding_rows
from beholder.comparison import DIFFERENCE, FACT, NONE_FOUND
from beholder.studies.public_figures.gender_findings import ratio_findings, wrong_occupation_findings
from beholder.studies.public_figures.identity_findings import identity_findings
from beholder.studies.public_figures.levels import LEVELS
from beholder.studies.public_figures.phrases import people, someone, specialties
from beholder.studies.public_figures.queries import found, reference, times_landmark
from beholder.studies.public_figures.scale_findings import scale_findings

KINDS = ("bias", "occupations", "association", "identity", "scale")


def public_figure_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show: differences first, then by kind and size."""
    makers = (ratio_findings, wrong_occupation_findings, association_findings, identity_findings, scale_findings)
    findings = [finding for make in makers for finding in make(part)]
    return sorted(findings, key=lambda each: (not each.shown, KINDS.index(each.kind), -each.effect))


def association_findings(part: pl.DataFrame) -> Iterator[Finding]:
    rows = valued(part, "association")
    if not rows:
        return
    decided = deciding_rows(part, "association").to_dicts()
    yield _levels(rows, [row for row in decided if row["verdict"] is not None])
    specialty = [row for row in decided if row["concept"] == LEVELS[-1] and reference(row)]
    weakest = min(specialty, key=lambda row: times_landmark(row["value"], reference(row)), default=None)
    if weakest and weakest["value"] < 0.5:  # a weakness only where most belief goes to other options
        top1 = {(row["subset"], row["concept"]): row for row in valued(part, "association_top1")}
        yield _weakest(weakest, top1.get((weakest["subset"], weakest["concept"])))


SAME_ANSWER = "Where everyone has the same right answer, nothing tells recognition from a liking for the word."


def _levels(rows: list[Result], tested: list[Result]) -> Finding:
    """How far belief falls from the easy level to the hard one, and where it is more than for others' answers."""
    ranges = {level: [row["value"] for row in rows if row["concept"] == level] for level in LEVELS}
    shares = listed([f"{span(values)} for {level}" for level, values in ranges.items() if values])
    branches = len({row["subset"] for row in rows})
    headline, told = f"Belief on the right answer is {shares}", []
    above = sorted(filter(found, tested), key=lambda row: -row["value"])
    verdict = verdict_of_rows(tested) if tested else FACT
    if verdict in (DIFFERENCE, NONE_FOUND):
        headline = "The right answer is not found to get more belief than the answers of other people"
        if above:
            cases = f"{len(above)} of {len(tested)} cases" if len(tested) > 1 else _case(above[0])
            headline = f"The right answer gets more belief than the answers of other people: {cases}"
        told.append(f"Mean belief on the right answer is {shares}.")
    if max(map(len, ranges.values())) > 1:
        told.append(f"Ranges are over {count(branches)} branches.")
    told += [f"{_case(row)[:1].upper()}{_case(row)[1:]}: {_excess(row)}." for row in tested]
    if len(tested) < len(rows):
        told.append(SAME_ANSWER)
    first = (*above, *tested, *rows)[0]
    more = [row for row in (*above, *tested, *rows) if row is not first]
    return finding(first, "association", headline, " ".join(told), verdict=verdict, effect=9.0, more=more)


def _case(row: Result) -> str:
    return f"{row['concept']} of {people(row['subset'])}"


def _excess(row: Result) -> str:
    """Belief on the right answers against that on others' answers."""
    places = decimals_for(row)
    others = f"{percent(row['landmark'], places)} on the answers of other people of the same gender"
    return f"{percent(row['value'], places)} against {others} ({uncertainty(row, decimals=places)})"


def _weakest(row: Result, first: Result | None) -> Finding:
    """The specialty that is nearest to what others' answers get, or to chance, or farthest below it."""
    branch, places = row["subset"], decimals_for(row)
    comes_first = f" The right one comes first for {percent(first['value'])} of the images." if first else ""
    compared = f"; guessing gives {percent(chance(row), places)}"
    if row["verdict"] is not None:
        compared = f"; the answers of other people of the same gender get {percent(row['landmark'], places)}"
    sentence = (
        f"Given a {picture(row)} of {someone(branch)} and {count(options(row) or 0)} "
        f"{specialties(branch)} to choose from, the model puts {percent(row['value'], places)} of its belief on "
        f"the right one ({uncertainty(row, decimals=places)}{compared}).{comes_first}"
    )
    headline = f"Weakest specialty: {people(branch)}, {percent(row['value'], places)} on the right one"
    effect, more = log_distance(row["value"], reference(row) or 1.0), [first] if first else []
    return finding(row, "association", headline, sentence, verdict=FACT, effect=effect, more=more)
