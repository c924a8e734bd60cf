"""Findings about public figures: few, the largest effects first. Verdicts are those of the comparison."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, deciding_rows, finding, valued, verdict_of_rows
from beholder.chapter.numbers import (
    MINUS,
    Result,
    chance,
    count,
    decimals_for,
    has_interval,
    listed,
    log_distance,
    options,
    percent,
    picture,
    row_p_value,
    signed,
    span,
    times,
    uncertainty,
)
from beholder.comparison import DIFFERENCE, FACT, NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.studies.public_figures.gender_findings import ratio_findings, wrong_occupation_findings
from beholder.studies.public_figures.levels import LEVELS
from beholder.studies.public_figures.phrases import found, people, reference, someone, specialties, times_landmark

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


# Findings about names

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


# Findings across models

WHAT = {
    "identity_given_image": "belief on the right name, given an image",
    "identity_given_name": "belief on the right image, given a name",
}
BY = {"scale_parameters": "parameters", "scale_pairs": "training pairs (at equal parameters)"}
NO_SAMPLE = "Models are no random sample, and those of one series are alike, so this need not be an effect of size."


def scale_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """Every slope that was found, in one finding."""
    rows = [row for metric in BY for row in valued(part, metric)]
    if not rows:
        return
    there = sorted((row for row in rows if found(row)), key=lambda row: row["p_value"])
    models = max(row["n"] for row in rows)
    if there:
        first = there[0]
        headline = f"Over up to {models} models, more {axis(first)} go with {_change(first)}"
        sentence = f"For ten times the {_slopes(there)}. {_rest(len(rows) - len(there))}{NO_SAMPLE}"
        more = [row for row in rows if row is not first]
        yield finding(first, "scale", headline, sentence, verdict=DIFFERENCE, effect=1.0, more=more)
    else:
        least = min(rows, key=lambda row: 1.0 if row["p_value"] is None else row["p_value"])
        headline = f"Over up to {models} models, no effect of size or training data was found"
        sentence = (
            f"{len(rows)} slopes were tested. The clearest, for ten times the {_slopes([least])}. "
            f"The intervals, which hold for all of them at once, tell what is still possible. {NO_SAMPLE}"
        )
        more = [row for row in rows if row is not least]
        yield finding(least, "scale", headline, sentence, verdict=verdict_of_rows(rows), more=more)


def axis(row: Result) -> str:
    """What grows along the axis."""
    return "parameters" if row["metric"].endswith("scale_parameters") else "training pairs"


def what(row: Result) -> str:
    """What was measured."""
    if row["concept"] == "bias_ratio":
        return f"distance of the bias ratio from 1 for {row['subset']}"
    return WHAT.get(row["concept"], f"belief on the right {row['subset']}")


def _change(row: Result) -> str:
    if row["concept"] == "bias_ratio":
        return f"a bias ratio {'farther from' if row['value'] > 0 else 'nearer to'} 1 for {row['subset']}"
    return f"{'more' if row['value'] > 0 else 'less'} {what(row)}"


def _slopes(rows: list[Result]) -> str:
    return listed([f"{BY[row['metric'].partition('.')[2]]}: {slope(row)} in {what(row)}" for row in rows[:4]])


def slope(row: Result) -> str:
    """The slope with its interval, p and number of models."""
    interval = f"95 % interval {size(row, row['low'])} to {size(row, row['high'])}; " if has_interval(row) else ""
    tested = f"p = {row_p_value(row)}; ".replace("= <", "<").replace("= ≤", "≤") if row["p_value"] is not None else ""
    unit = "" if row["concept"] == "bias_ratio" else " points"
    return f"{size(row, row['value'])}{unit} ({interval}{tested}{row['n']} models)"


def size(row: Result, value: float) -> str:
    """A slope in points, or for b in e-folds of its distance from 1."""
    if row["concept"] != "bias_ratio":
        return signed(value)
    text = f"{value:+.2f}".replace("-", MINUS)
    return text.lstrip("+" + MINUS) if float(f"{value:.2f}") == 0 else text


def _rest(number: int) -> str:
    return (
        f"{number} other slopes were not found. " if number > 1 else "One other slope was not found. " if number else ""
    )
