"""Findings about own prompts: only what gaps, slopes and intersections show, all of them judged together."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding
from beholder.chapter.numbers import Result, has_interval, percent, points, points_decimals, points_range, row_p_value
from beholder.chapter.phrases import listed
from beholder.comparison.verdicts import NONE_FOUND, TOO_LITTLE
from beholder.prompts.prompt_set import ONE_LEVEL
from beholder.studies.custom.queries import BASES, BELIEF, differences, mean_of, shown

MOST_FINDINGS = 4
MEASURED = {
    BELIEF: "the share of belief on “{}”",
    "custom.p_yes": "P(yes) to “{}”",
    "custom.presence": "the presence of “{}”",
    "custom.association": "the share of belief on the correct prompt",
    "custom.association_top1": "the share of images whose correct prompt comes first",
}


def custom_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """The widest differences that are shown; where none is, that none is."""
    gaps, slopes, crossed = (differences(part, kind) for kind in ("gap", "slope", "interaction"))
    found = [
        *(_gap(part, row) for row in gaps if shown(row)),
        *(_slope(row) for row in slopes if shown(row)),
        *(_interaction(row) for row in crossed if shown(row)),
    ]
    yield from sorted(found, key=lambda each: -each.effect)[:MOST_FINDINGS]
    if not found and (gaps or slopes):
        yield _nothing(part, gaps, slopes)


def _what(row: Result) -> str:
    """What differs, at the beginning of a sentence."""
    what = MEASURED[BASES[row["metric"]]].format(row["concept"])
    level = row["template"]
    among = (
        "" if level in (None, ONE_LEVEL) or BASES[row["metric"]] != BELIEF else f" among the prompts of level “{level}”"
    )
    return f"{what[0].upper()}{what[1:]}{among}"


def _subject(row: Result) -> str:
    """What a headline speaks of: the prompt, or what is measured of a whole level."""
    base = BASES[row["metric"]]
    return f"“{row['concept']}”" if "{}" in MEASURED[base] else _what(row)


def _bracket(row: Result) -> str:
    bounds = f"95 % interval {points_range(row)} points" if has_interval(row) else "no interval"
    p_value = "" if row["p_value"] is None else f", p {row_p_value(row)}"
    return f"{bounds}{p_value}, n = {row['n']:,}"


def _gap(part: pl.DataFrame, row: Result) -> Finding:
    groups = row["group"], row["against"]
    means = [percent(mean_of(part, row, group)) for group in groups]
    chance = f" Shuffled labels give {points(row['chance'])} points on average." if row["chance"] is not None else ""
    sentence = (
        f"{_what(row)} is {means[0]} for {groups[0]} and {means[1]} for {groups[1]}: "
        f"{points(row['value'], points_decimals(row))} points apart ({_bracket(row)}).{chance}"
    )
    headline = f"{_subject(row)} differs by {row['subset']}"
    return finding(row, "custom", headline, sentence, shown=True, effect=abs(row["value"]))


def _slope(row: Result) -> Finding:
    rises = "rises" if row["value"] > 0 else "falls"
    sentence = (
        f"{_what(row)} {rises} by {points(abs(row['value']), 2)} points per unit of {row['subset']} ({_bracket(row)})."
    )
    headline = f"{_subject(row)} {rises} with {row['subset']}"
    return finding(row, "custom", headline, sentence, shown=True, effect=abs(row["value"]))


def _interaction(row: Result) -> Finding:
    more = "above" if row["value"] > 0 else "below"
    sentence = (
        f"{_what(row)} is, for {row['group']}, {points(abs(row['value']), points_decimals(row))} points {more} what "
        f"its two attributes add up to ({row['subset']}; {_bracket(row)}; partly pooled with the other intersections)."
    )
    headline = f"{_subject(row)} differs for {row['group']} beyond its two attributes"
    return finding(row, "custom", headline, sentence, shown=True, effect=abs(row["value"]))


def _nothing(part: pl.DataFrame, gaps: list[Result], slopes: list[Result]) -> Finding:
    """That nothing is shown, with the widest gap that was seen."""
    rows = gaps or slopes
    widest = max(rows, key=lambda row: abs(row["value"]))
    attributes = listed(list(dict.fromkeys(row["subset"] for row in rows)))
    sentence = f"No prompt is shown to differ by {attributes}, with all prompts and groups judged together."
    if gaps:
        chance = f"; shuffled labels give {points(widest['chance'])} on average" if widest["chance"] is not None else ""
        sentence += (
            f" The widest gap is {points(widest['value'], points_decimals(widest))} points, in "
            f"{MEASURED[BASES[widest['metric']]].format(widest['concept'])} between {widest['group']} and "
            f"{widest['against']} ({_bracket(widest)}{chance})."
        )
    alike = differences(part, "equivalence")
    if alike:
        within = sum(row["equivalence"] == "equivalent" for row in alike)
        delta = points(alike[0]["delta"], 2).rstrip("0").rstrip(".")
        sentence += f" Shown to lie within {delta} points: {within} of {len(alike)} comparisons."
    known = any(has_interval(row) for row in rows)
    headline = f"No difference by {attributes} is shown"
    return finding(widest, "custom", headline, sentence, verdict=NONE_FOUND if known else TOO_LITTLE)
