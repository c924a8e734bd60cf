"""Findings about own prompts: what gaps, slopes and intersections say, all of them judged together."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding, verdict_of_rows
from beholder.chapter.numbers import (
    Result,
    has_interval,
    listed,
    percent,
    plural,
    points,
    points_decimals,
    points_range,
    row_p_value,
)
from beholder.chapter.queries import deciding_rows
from beholder.comparison.family import DIFFERENCE, FACT, TOO_LITTLE
from beholder.comparison.groups import REST
from beholder.core.results import WITHIN
from beholder.prompts.prompt_set import ONE_LEVEL
from beholder.studies.custom.gaps import BALANCE, GAPS, KINDS

BASES = {gap.removesuffix("gap") + kind: base for base, gap in GAPS.items() for kind in KINDS}
"""What is measured, by the metric that says how it differs."""
BELIEF = "custom.probability"


def differences(part: pl.DataFrame, kind: str) -> list[Result]:
    """The rows that decide about a kind of difference; of gaps only the two groups farthest apart."""
    metrics = [gap.removesuffix("gap") + kind for gap in GAPS.values()]
    rows = [row for metric in metrics for row in deciding_rows(part, metric.removeprefix("custom.")).to_dicts()]
    return [row for row in rows if row["metric"] in metrics and row["against"] != REST]


def within(row: Result) -> str:
    """What a difference was measured within, in words; nothing where it is the plain one.

    >>> within({"variant": "within branch: actors"}), within({"variant": None})
    ('branch: actors', '')
    """
    return (row.get("variant") or "").removeprefix(WITHIN)


def overall(rows: list[Result]) -> list[Result]:
    """Those of all people; without those within a single stratum."""
    return [row for row in rows if ": " not in within(row)]


def mean_of(part: pl.DataFrame, row: Result, group: str) -> float | None:
    """The mean of one of the groups that a gap compares."""
    where = {
        "metric": BASES[row["metric"]],
        "group": group,
        **{key: row[key] for key in ("model", "subset", "concept")},
    }
    same = part.filter(*(pl.col(key) == value for key, value in where.items() if value is not None))
    same = same.filter(pl.col("template").eq_missing(pl.lit(row["template"], pl.String)))
    return same["value"][0] if same.height else None


def imbalances(part: pl.DataFrame) -> dict[tuple[str, str], list[Result]]:
    """By attribute and other label that go together: shares of the label's most unequal value, group by group."""
    found = {}
    for (attribute, label), rows in part.filter(metric=BALANCE).group_by("subset", "concept", maintain_order=True):
        by_value = [own.to_dicts() for _, own in rows.group_by("template", maintain_order=True)]
        found[str(attribute), str(label)] = max(by_value, key=_range)
    return found


def _range(rows: list[Result]) -> float:
    shares = [float(row["value"]) for row in rows]
    return max(shares) - min(shares)


# Findings about own prompts

MOST_FINDINGS = 4
MEASURED = {
    BELIEF: ("Belief in “{}”", "Mean belief in “{}”"),
    "custom.p_yes": ("P(yes) to “{}”", "Mean P(yes) to “{}”"),
    "custom.presence": ("The presence of “{}”", "The mean presence of “{}”"),
    "custom.association": ("Belief in the correct prompt", "Mean belief in the correct prompt"),
    "custom.association_top1": ("The share of images whose correct prompt comes first",) * 2,
}
"""What differs, in a headline and at the beginning of a sentence."""


def custom_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """The widest differences that were found, or that none was; and labels that go together with those compared."""
    gaps, slopes, crossed = (differences(part, kind) for kind in ("gap", "slope", "interaction"))
    found = [
        *(_gap(part, row) for row in gaps if row["verdict"] == DIFFERENCE),
        *(_slope(row) for row in slopes if row["verdict"] == DIFFERENCE),
        *(_interaction(row) for row in crossed if row["verdict"] == DIFFERENCE),
    ]
    yield from sorted(found, key=lambda each: -each.effect)[:MOST_FINDINGS]
    if not found and (gaps or slopes):
        yield _nothing(part, overall(gaps), slopes)
    yield from _together(part)


def _subject(row: Result) -> str:
    return MEASURED[BASES[row["metric"]]][0].format(row["concept"])


def _what(row: Result) -> str:
    """What differs, at the beginning of a sentence."""
    base, level = BASES[row["metric"]], row["template"]
    among = "" if level in (None, ONE_LEVEL) or base != BELIEF else f" among the prompts of level “{level}”"
    return MEASURED[base][1].format(row["concept"]) + among


def _bracket(row: Result) -> str:
    bounds = f"95 % interval {points_range(row)} points" if has_interval(row) else "no interval"
    p_value = "" if row["p_value"] is None else f", p {row_p_value(row)}"
    return f"{bounds}{p_value}, n = {row['n']:,}"


def _gap(part: pl.DataFrame, row: Result) -> Finding:
    groups = row["group"], row["against"]
    means = [f"{percent(mean_of(part, row, group))} for {plural(group)}" for group in groups]
    strata = f"; within {within(row)} they are" if within(row) else ":"
    sentence = (
        (
            f"{_what(row)} is {' and '.join(means)}{strata} "
            f"{points(row['value'], points_decimals(row))} points apart ({_bracket(row)})."
        )
        .replace("Mean p(yes)", "Mean P(yes)")
        .replace("Mean the ", "The mean ")
    )
    sentence += _warning(part, row["subset"])
    headline = f"{_subject(row)} differs by {row['subset']}"
    return finding(row, "custom", headline, sentence, verdict=DIFFERENCE, effect=abs(row["value"]))


def _slope(row: Result) -> Finding:
    rises = "rises" if row["value"] > 0 else "falls"
    strata = f", within {within(row)}" if within(row) else ""
    sentence = (
        f"{_what(row)} {rises} by {points(abs(row['value']), 2)} points per unit of {row['subset']}{strata} "
        f"({_bracket(row)})."
    )
    headline = f"{_subject(row)} {rises} with {row['subset']}"
    return finding(row, "custom", headline, sentence, verdict=DIFFERENCE, effect=abs(row["value"]))


def _interaction(row: Result) -> Finding:
    more = "above" if row["value"] > 0 else "below"
    sentence = (
        f"{_what(row)} is, for {row['group']}, {points(abs(row['value']), points_decimals(row))} points {more} what "
        f"its two attributes add up to ({row['subset']}; {_bracket(row)})."
    )
    headline = f"{_subject(row)} differs for {row['group']} beyond its two attributes"
    return finding(row, "custom", headline, sentence, verdict=DIFFERENCE, effect=abs(row["value"]))


def _nothing(part: pl.DataFrame, gaps: list[Result], slopes: list[Result]) -> Finding:
    """That nothing was found, with the widest gap that was seen and how large one could still be."""
    rows, verdict = gaps or slopes, verdict_of_rows(gaps or slopes)
    widest = max(rows, key=lambda row: abs(row["value"]))
    attributes = listed(list(dict.fromkeys(row["subset"] for row in rows)))
    sentence = f"No prompt is found to differ by {attributes}, with all prompts and groups judged together."
    if verdict == TOO_LITTLE:
        sentence = f"The data are too few to say whether a prompt differs by {attributes}."
    if gaps:
        strata = f" within {within(widest)}" if within(widest) else ""
        sentence += (
            f" {_subject(widest)} has the widest gap{strata}: {points(widest['value'], points_decimals(widest))} "
            f"points between {plural(widest['group'])} and {plural(widest['against'])} ({_bracket(widest)})."
        )
    bounds = [max(abs(row["low"]), abs(row["high"])) for row in gaps if has_interval(row)]
    if bounds:
        sentence += f" Gaps of up to {points(max(bounds))} points could have been missed."
    alike = differences(part, "equivalence")
    if alike:
        inside = sum(row["equivalence"] == "equivalent" for row in alike)
        delta = points(alike[0]["delta"], 2).rstrip("0").rstrip(".")
        sentence += f" Shown to lie within {delta} points: {inside} of {len(alike)} comparisons."
    sentence += "".join(_warning(part, attribute) for attribute in dict.fromkeys(row["subset"] for row in rows))
    return finding(widest, "custom", f"No difference by {attributes} was found", sentence, verdict=verdict)


def _warning(part: pl.DataFrame, attribute: str) -> str:
    """The label that goes most together with an attribute: it may be behind a difference, or hide one."""
    told = next((rows for (own, _), rows in imbalances(part).items() if own == attribute), None)
    return f" But {_go_together(told)} in this data: {_shares(told)}" if told else ""


def _together(part: pl.DataFrame) -> Iterator[Finding]:
    """Labels that are spread unequally over the groups, and what to do."""
    for rows in imbalances(part).values():
        yield finding(
            rows[0], "balance", f"In this data {_go_together(rows)}", _shares(rows), verdict=FACT, more=rows[1:]
        )


def _go_together(rows: list[Result]) -> str:
    return f"{rows[0]['subset']} and {rows[0]['concept']} go together"


def _shares(rows: list[Result]) -> str:
    shares = listed([f"{percent(row['value'])} of {plural(row['group'])}" for row in rows])
    return f"{shares} are {rows[0]['template']}; compare within it: --within {rows[0]['concept']}."
