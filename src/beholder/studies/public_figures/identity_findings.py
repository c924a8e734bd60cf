"""Findings about names: whether the model tells people apart beyond what their labels tell."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding, verdict_of_rows
from beholder.chapter.numbers import (
    Result,
    chance,
    decimals_for,
    has_interval,
    log_distance,
    options,
    percent,
    times,
    uncertainty,
)
from beholder.chapter.phrases import count, listed, picture
from beholder.chapter.queries import deciding_rows
from beholder.comparison import DIFFERENCE, NOT_MEASURED, TOO_LITTLE
from beholder.studies.public_figures.phrases import people
from beholder.studies.public_figures.queries import found, times_landmark

EXCHANGED = "Names are exchanged among people with the same labels: gender, and party, sport or award if known."
TRAITS = "Traits that are not labelled, such as age or hair, may suffice to tell people apart."
WAYS = ("identity_given_image", "identity_given_name")


def identity_findings(part: pl.DataFrame) -> Iterator[Finding]:
    rows = [row for way in WAYS for row in deciding_rows(part, way).to_dicts() if chance(row)]
    compared = [row for row in rows if row["verdict"] is not None]
    if any(map(found, compared)):
        yield _knows_names(compared)
    elif rows:
        yield _no_names(compared) if compared else _nothing_to_compare(rows)


def _ways(rows: list[Result]) -> list[list[Result]]:
    """The rows of each direction."""
    ways = ([row for row in rows if row["metric"].endswith(way)] for way in WAYS)
    return [way for way in ways if way]


def _knows_names(rows: list[Result]) -> Finding:
    known = sorted(filter(found, rows), key=lambda row: -row["value"])
    branches, everyone = (list(dict.fromkeys(row["subset"] for row in each)) for each in (known, rows))
    where = " in every branch" if len(everyone) > 1 else f": {people(everyone[0])}"
    if len(branches) < len(everyone):
        where = f": {listed([people(branch) for branch in branches])}"
    sentence = " ".join([*map(_way, _ways(rows)), EXCHANGED, TRAITS])
    effect = log_distance(times_landmark(known[0]["value"], known[0]["landmark"]), 1.0)
    more = [row for row in rows if row is not known[0]]
    headline = f"The model tells people apart by name{where}"
    return finding(known[0], "identity", headline, sentence, verdict=DIFFERENCE, effect=effect, more=more)


def _way(rows: list[Result]) -> str:
    """One direction: the best and the least known branch, then those where nothing was found."""
    known = sorted(filter(found, rows), key=lambda row: -row["value"])
    others = [row for row in rows if row not in known]
    ends = known if len(known) < 3 else (known[0], known[-1])
    given, right = _directions(rows[0])
    shares = f"{given}, {right} gets {'; '.join(map(_name_share, ends))}." if known else ""
    if not others:
        return shares
    which = f"for {listed([people(row['subset']) for row in others])}" if known else f"{given[:1].lower()}{given[1:]}"
    return f"{shares} No more than exchanged names get was found {which}.".strip()


def _directions(row: Result) -> tuple[str, str]:
    """What is given, and what is sought."""
    if row["metric"].endswith("given_image"):
        return f"Given a {picture(row)}", "the right name"
    return "Given a name", f"the right {picture(row)}"


def _name_share(row: Result) -> str:
    places, who = decimals_for(row), people(row["subset"])
    # Given a name, 1/chance is not the number of pictures: a person may have several.
    sought = f"{options(row) or 1} names" if row["metric"].endswith("given_image") else f"the {picture(row)}s"
    return (
        f"{percent(row['value'], places)} among {sought} of {who} "
        f"({uncertainty(row, decimals=places)}; exchanged names {percent(row['landmark'])})"
    )


def _no_names(rows: list[Result]) -> Finding:
    ways, verdict = _ways(rows), verdict_of_rows(rows)
    parts = []
    for way in ways:
        given, right = _directions(way[0])
        much = _times_range([times_landmark(row["value"], row["landmark"]) for row in way])
        parts.append(f"{given}, {right} gets {much} what exchanged names get")
    reach = [times_landmark(row["high"], row["landmark"]) for row in rows if has_interval(row)]
    possible = f" Up to {times(max(reach))} times is still possible." if reach else ""
    labels = max(times_landmark(row["landmark"], chance(row)) for row in rows)
    more = f" Exchanged names themselves get up to {labels:.1f} times 1/n." if labels >= LABELS_TELL else ""
    sentence = f"{'. '.join(parts)} ({_among(ways[0])}).{possible}{more} {EXCHANGED}"
    headline = "The model is not found to tell people apart by name"
    if verdict == TOO_LITTLE:
        headline = "Too few people to say whether the model tells them apart by name"
    return finding(rows[0], "identity", headline, sentence, verdict=verdict, more=rows[1:])


def _among(rows: list[Result]) -> str:
    where = f"{count(len(rows))} branches" if len(rows) > 1 else people(rows[0]["subset"])
    return f"{where}, n = {sum(row['n'] for row in rows)}"


def _times_range(ratios: list[float]) -> str:
    low, high = (f"{each:.2f}" if each < 3 else times(each) for each in (min(ratios), max(ratios)))
    return f"{low} times" if low == high else f"{low} to {high} times"


LABELS_TELL = 1.15
"""From here on exchanged names get so much more than 1/n that it is said."""


def _nothing_to_compare(rows: list[Result]) -> Finding:
    (first, *_), (given, right) = _ways(rows), _directions(rows[0])
    much = _times_range([times_landmark(row["value"], chance(row)) for row in first])
    sentence = (
        f"{given}, {right} gets {much} 1/n ({_among(first)}). That may be no more than telling women "
        "from men. There are no exchanged names to compare with, so nothing is claimed."
    )
    headline = "Whether the model knows people by name was not tested"
    return finding(rows[0], "identity", headline, sentence, verdict=NOT_MEASURED, more=rows[1:])
