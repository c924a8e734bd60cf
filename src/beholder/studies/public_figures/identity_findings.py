"""Findings about names: whether the model tells people apart beyond what their labels tell."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.family_correction import log
from beholder.chapter.finding import Finding, finding, valued
from beholder.chapter.numbers import (
    Result,
    chance,
    decimals_for,
    excludes,
    options,
    percent,
    row_p_value,
    times,
    uncertainty,
)
from beholder.chapter.phrases import count, listed, picture
from beholder.comparison.verdicts import NOT_MEASURED
from beholder.studies.public_figures.phrases import people
from beholder.studies.public_figures.queries import known_by_name, nothing_shown, times_landmark

SHUFFLED = "Shuffled names are exchanged among people with the same labels: gender, and party, sport or award if known."
WAYS = ("identity_given_image", "identity_given_name")


def identity_findings(part: pl.DataFrame) -> Iterator[Finding]:
    ways = [rows for way in WAYS if (rows := [row for row in valued(part, way) if chance(row)])]
    if not ways:
        return
    compared = [rows for rows in ([row for row in rows if row["landmark"] is not None] for rows in ways) if rows]
    if not compared:
        yield _nothing_to_compare(ways)
    elif any(known_by_name(row) for rows in compared for row in rows):
        yield _knows_names(compared)
    else:
        yield _no_names(compared)


def _knows_names(ways: list[list[Result]]) -> Finding:
    rows = [row for way in ways for row in way]
    known = sorted(filter(known_by_name, rows), key=lambda row: -row["value"])
    branches, everyone = (list(dict.fromkeys(row["subset"] for row in each)) for each in (known, rows))
    where = " in every branch" if len(everyone) > 1 else f": {people(everyone[0])}"
    if len(branches) < len(everyone):
        where = f": {listed([people(branch) for branch in branches])}"
    sentence = " ".join([*(_way(way, len(rows)) for way in ways), SHUFFLED])
    effect = abs(log(times_landmark(known[0]["value"], known[0]["landmark"])))
    more = [row for row in rows if row is not known[0]]
    headline = f"The model tells people apart by name{where}"
    return finding(known[0], "identity", headline, sentence, shown=True, effect=effect, more=more)


def _way(rows: list[Result], tests: int) -> str:
    """One direction: the best and the least known branch, then those where nothing is shown."""
    known = sorted(filter(known_by_name, rows), key=lambda row: -row["value"])
    others = [row for row in rows if row not in known]
    ends = known if len(known) < 3 else (known[0], known[-1])
    given, right = _directions(rows[0])
    shares = f"{given}, {right} gets {'; '.join(map(_name_share, ends))}." if known else ""
    if not others:
        return shares
    which = f"for {listed([people(row['subset']) for row in others])}" if known else f"{given[:1].lower()}{given[1:]}"
    return f"{shares} No more than shuffled names is shown {which}{_why_not(others, tests)}.".strip()


def _directions(row: Result) -> tuple[str, str]:
    """What is given, and what is sought."""
    if row["metric"].endswith("given_image"):
        return f"Given a {picture(row)}", "the right name"
    return "Given a name", f"the right {picture(row)}"


def _why_not(rows: list[Result], tests: int) -> str:
    """Why nothing is claimed of rows whose interval lies above the landmark."""
    above = [row for row in rows if row["value"] > row["landmark"] and excludes(row, row["landmark"])]
    if not above:
        return ""
    listing = listed([f"{people(row['subset'])} (p = {row_p_value(row)})" for row in above])
    test = f"the test, corrected for {tests}," if tests > 1 else "the test"
    return f"; the interval lies above for {listing}, but {test} does not show it"


def _name_share(row: Result) -> str:
    places, who = decimals_for(row), people(row["subset"])
    # Given a name, 1/chance is not the number of pictures: a person may have several.
    sought = f"{options(row) or 1} names" if row["metric"].endswith("given_image") else f"the {picture(row)}s"
    return (
        f"{percent(row['value'], places)} among {sought} of {who} "
        f"({uncertainty(row, decimals=places)}; shuffled names {percent(row['landmark'])})"
    )


def _no_names(ways: list[list[Result]]) -> Finding:
    rows = [row for way in ways for row in way]
    parts = []
    for way in ways:
        given, right = _directions(way[0])
        much = _times_range([times_landmark(row["value"], row["landmark"]) for row in way])
        parts.append(f"{given}, {right} gets {much} what shuffled names get")
    sentence = f"{'. '.join(parts)} ({_among(ways[0])}). {_no_more(rows)} {SHUFFLED}"
    headline = "The model is not shown to tell people apart by name"
    return finding(rows[0], "identity", headline, sentence, verdict=nothing_shown(rows), more=rows[1:])


def _among(rows: list[Result]) -> str:
    where = f"{count(len(rows))} branches" if len(rows) > 1 else people(rows[0]["subset"])
    return f"{where}, n = {sum(row['n'] for row in rows)}"


def _times_range(ratios: list[float]) -> str:
    low, high = (f"{each:.2f}" if each < 3 else times(each) for each in (min(ratios), max(ratios)))
    return f"{low} times" if low == high else f"{low} to {high} times"


def _no_more(rows: list[Result]) -> str:
    above = _why_not(rows, len(rows))
    labels = max(times_landmark(row["landmark"], chance(row)) for row in rows)
    more = f" Shuffled names themselves get up to {labels:.1f} times 1/n." if labels >= LABELS_TELL else ""
    return f"No test shows more{above}.{more}"


LABELS_TELL = 1.15
"""From here on shuffled names get so much more than 1/n that it is said."""


def _nothing_to_compare(ways: list[list[Result]]) -> Finding:
    rows = [row for way in ways for row in way]
    given, right = _directions(rows[0])
    much = _times_range([times_landmark(row["value"], chance(row)) for row in ways[0]])
    sentence = (
        f"{given}, {right} gets {much} 1/n ({_among(ways[0])}). That may be no more than telling women "
        "from men. There are no shuffled names to compare with, so nothing is claimed."
    )
    headline = "Whether the model knows people by name was not tested"
    return finding(rows[0], "identity", headline, sentence, verdict=NOT_MEASURED, more=rows[1:])
