"""Findings about women and men: the ratio b, and wrong occupations that go to one of them more often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from beholder.chapter.finding import Finding, finding, valued
from beholder.chapter.numbers import (
    Result,
    excludes,
    has_interval,
    log_distance,
    percent,
    points,
    points_decimals,
    points_range,
    ratio,
    ratio_decimals,
    ratio_range,
    row_p_value,
    signed,
)
from beholder.chapter.phrases import count, drawn, listed, plural
from beholder.chapter.queries import one_row
from beholder.studies.public_figures.levels import GROUPS
from beholder.studies.public_figures.phrases import (
    PLAYERS_PLURAL,
    correct_occupation,
    either_word,
    field,
    people,
    word_pair,
)
from beholder.studies.public_figures.queries import claimed_ratios, nothing_shown, shown, shown_ratios

SLIGHT = 1.05
"""A ratio whose whole interval lies between 1/1.05 and 1.05 is called nearly the same."""


# Gender ratio

Sides = dict[str, Result]
"""The probability of the right occupation for women and for men; empty where it was not measured for both."""
NOT_NONE = "which does not mean that there is none."


def ratio_findings(part: pl.DataFrame) -> Iterator[Finding]:
    rows, sides = claimed_ratios(part), _right_probabilities(part)
    different = shown_ratios(rows)
    for row in different:
        yield _difference(row, sides.get(row["subset"], {}), part)
    alike = [row for row in rows if row not in different]
    if alike:
        yield _no_difference(alike, sides, len(rows), part)


def _right_probabilities(part: pl.DataFrame) -> dict[str, Sides]:
    """By pool, the rows of the right occupation for women and for men; of either word where both were measured."""
    pools: dict[str, Sides] = {}
    for metric in ("occupation_probability", "either_word_probability"):
        for row in valued(part, metric):
            right = correct_occupation(row["subset"], row["group"])
            if row["concept"] in (right, either_word(right)):
                pools.setdefault(row["subset"], {})[row["group"]] = row
    return {pool: sides for pool, sides in pools.items() if set(sides) == set(GROUPS)}


def slight(row: Result) -> bool:
    """Whether the whole interval lies so near 1 that the difference, though shown, has no weight."""
    return has_interval(row) and 1 / SLIGHT <= row["low"] <= row["high"] <= SLIGHT


def _difference(row: Result, sides: Sides, part: pl.DataFrame) -> Finding:
    if slight(row):
        who = "Drawn women and men" if drawn(row["dataset"]) else "Women and men"
        headline = f"{who} {field(row['subset'])} get nearly the same probability of the right occupation"
        verdict = "The interval excludes 1 and lies within 5 % of it."
    else:
        headline, verdict = _less_headline(row, sides), "The interval excludes 1."
    published, branches, options = _published_beside(row, part), _branches(row, part), _other_options(row, part)
    told = (_ratio_sentence(row, sides), verdict, published.text, branches.text, options.text)
    sentence, effect = " ".join(filter(None, told)), log_distance(row["value"], 1.0)
    more = [*sides.values(), *published.rows, *branches.rows, *options.rows]
    return finding(row, "bias", headline, sentence, shown=True, effect=effect, more=more)


class Beside(NamedTuple):
    """A sentence beside the claim, with its rows; empty where there is nothing to say."""

    text: str = ""
    rows: tuple[Result, ...] = ()


def _published_beside(row: Result, part: pl.DataFrame) -> Beside:
    """The published measure, where the claim is about either word."""
    either = row["metric"].endswith("either_word_ratio")
    published = one_row(part, "bias_ratio", subset=row["subset"]) if either else None
    if published is None:
        return Beside()
    women, men = (correct_occupation(row["subset"], group) for group in GROUPS)
    text = f"The published measure, “{women}” for women over “{men}” for men, is {_ratio_and_range(published)}."
    return Beside(text, (published,))


def _branches(row: Result, part: pl.DataFrame) -> Beside:
    """b of every branch of the pool."""
    rows = [each for each in valued(part, "branch_ratio") if each["concept"] == row["subset"]]
    if not rows:
        return Beside()
    listing = ", ".join(f"{people(each['subset'])} {ratio(each['value'])}" for each in rows)
    return Beside(f"By branch: {listing}.", tuple(rows))


def _other_options(row: Result, part: pl.DataFrame) -> Beside:
    """The option without which b lies on the other side of 1, if there is one: the one that moves it farthest."""
    rows = [each for each in valued(part, "ratio_without") if each["subset"] == row["subset"] and each["value"] > 0]
    other_side = [each for each in rows if (each["value"] - 1) * (row["value"] - 1) < 0]
    if not other_side or slight(row) or row["metric"].endswith("either_word_ratio"):
        return Beside()
    far = max(other_side, key=lambda each: log_distance(each["value"], 1.0))
    text = f"It depends on what else is offered: without “{far['concept']}” the ratio is {_ratio_and_range(far)}."
    return Beside(text, (far,))


def _ratio_and_range(row: Result) -> str:
    interval = f" ({ratio_range(row)})" if has_interval(row) else ""
    return f"{ratio(row['value'], ratio_decimals(row))}{interval}"


def _less_headline(row: Result, sides: Sides) -> str:
    """Who is taken for what they are less often than whom, and how often."""
    pool = row["subset"]
    less, more = GROUPS if row["value"] < 1 else GROUPS[::-1]
    texts = told_apart(sides[less], sides[more]) if sides else []
    shares = f": {' against '.join(texts)}" if len(set(texts)) > 1 else ""
    if _own_words(row):
        than = f"{PLAYERS_PLURAL[more]} for “{correct_occupation(pool, more)}”"
        who = PLAYERS_PLURAL[less]
    else:
        than = _group(row, more)
        who = f"{_group(row, less)} {field(pool)}"
    who = who[:1].upper() + who[1:]
    return f"{who} are taken for {_right_words(row, less)} less often than {than}{shares}"


def _own_words(row: Result) -> bool:
    """Whether women are asked about one word and men about another: the published measure of actors."""
    return row["subset"] == "actors" and not row["metric"].endswith("either_word_ratio")


def _right_words(row: Result, group: str) -> str:
    word = correct_occupation(row["subset"], group)
    return " or ".join(f"“{each}”" for each in ((word,) if _own_words(row) else word_pair(word) or (word,)))


def _group(row: Result, group: str) -> str:
    return f"drawn {plural(group)}" if drawn(row["dataset"]) else plural(group)


def told_apart(*rows: Result) -> list[str]:
    """Probabilities with as many decimals as it takes to tell them apart."""
    values = [row["value"] for row in rows]
    texts = [[percent(value, places) for value in values] for places in (None, 1, 2)]
    return next((each for each in texts if len(set(each)) > 1), texts[0])


def _ratio_sentence(row: Result, sides: Sides) -> str:
    """Both probabilities and their ratio."""
    pool, value = row["subset"], ratio(row["value"], ratio_decimals(row))
    who = [f"{_group(row, 'woman')} {field(pool)}", _group(row, "man")]
    that = ""
    if _own_words(row):
        who, that = list(PLAYERS_PLURAL.values()), f"that of {_right_words(row, 'man')} "
    if not sides:
        compared = f"for {who[0]} is {value} times {that or 'that '}for {who[1]}"
    else:
        first, second = told_apart(*(sides[group] for group in GROUPS))
        compared = f"is {first} for {who[0]}, and {that}{second} for {who[1]}: a ratio of {value}"
    return f"The mean probability of {_right_words(row, 'woman')} {compared} ({_ratio_bracket(row, sides)})."


def _ratio_bracket(row: Result, sides: Sides) -> str:
    sizes = f"{sides['woman']['n']} women, {sides['man']['n']} men" if sides else f"n = {row['n']}"
    return f"95 % interval {ratio_range(row)}; {sizes}" if has_interval(row) else f"no interval; {sizes}"


def _no_difference(rows: list[Result], sides: dict[str, Sides], pools: int, part: pl.DataFrame) -> Finding:
    """Several pools in one finding, so that what is not shown does not fill the page."""
    headline = f"No gender difference is shown for {listed([row['subset'] for row in rows])}"
    claim = f"Women over men: {', '.join(map(_ratio_brief, rows))}."
    if len(rows) == 1:
        claim = _ratio_sentence(rows[0], sides.get(rows[0]["subset"], {}))
    excluding = [row["subset"] for row in rows if excludes(row, 1.0)]
    if excluding and pools > 1:
        verdict = (
            f"The interval of {listed(excluding)} excludes 1, but one of {count(pools)} may do so by chance. "
            f"After correction no difference is shown, {NOT_NONE}"
        )
    elif excluding:
        verdict = f"The interval excludes 1, but the test does not (p = {row_p_value(rows[0])}), so nothing is claimed."
    elif any(map(has_interval, rows)):
        subject = "The interval does not exclude" if len(rows) == 1 else "No 95 % interval excludes"
        verdict = f"{subject} 1. No difference is shown, {NOT_NONE}"
    else:
        verdict = "Without an interval nothing is claimed."
    published = [each for row in rows if (each := _published_beside(row, part)).text]
    sentence = " ".join([claim, verdict, *(each.text for each in published)])
    more = [*rows[1:], *(side for row in rows for side in sides.get(row["subset"], {}).values())]
    more += [row for each in published for row in each.rows]
    return finding(rows[0], "bias", headline, sentence, verdict=nothing_shown(rows), more=more)


def _ratio_brief(row: Result) -> str:
    either = " (either word)" if row["metric"].endswith("either_word_ratio") else ""
    return f"{row['subset']}{either} {_ratio_and_range(row)}"


# Wrong occupations


def wrong_occupation_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """The widest difference that is shown, and how many others are."""
    rows = sorted(valued(part, "occupation_gap"), key=lambda row: -abs(row["value"]))
    if not rows:
        return
    there = [row for row in rows if shown(row)]
    yield _wrongly_called(there, len(rows), part) if there else _called_alike(rows)


def _wrongly_called(rows: list[Result], tests: int, part: pl.DataFrame) -> Finding:
    first = rows[0]
    more, less = (first["group"], first["against"]) if first["value"] > 0 else (first["against"], first["group"])
    sides = _sides_of(first, part)
    shares = ""
    if sides and (sides[GROUPS[0]]["value"] - sides[GROUPS[1]]["value"]) * first["value"] > 0:
        shares = f": {' against '.join(told_apart(sides[more], sides[less]))}"
    who = f"{_group(first, more)} {field(first['subset'])}"
    called = f"{who[:1].upper()}{who[1:]} are wrongly called “{first['concept']}” more often than {_group(first, less)}"
    many = f" {len(rows)} of {tests} differences in wrong occupations are shown" if tests > 1 else ""
    others = f": also {listed([_brief_gap(row) for row in rows[1:4]])}" if len(rows) > 1 else ""
    rest = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
    told = f"{many}{others}{rest}." if many else ""
    sentence = f"Women minus men, within branches: {_gap_text(first)}.{told}"
    evidence = [*sides.values(), *rows[1:]]
    return finding(first, "occupations", f"{called}{shares}", sentence, shown=True, effect=1.0, more=evidence)


def _sides_of(row: Result, part: pl.DataFrame) -> Sides:
    """The probabilities of a gap's occupation for women and for men."""
    for metric in ("either_word_probability", "occupation_probability"):
        place = {"subset": row["subset"], "concept": row["concept"]}
        sides = {group: each for group in GROUPS if (each := one_row(part, metric, group=group, **place))}
        if len(sides) == len(GROUPS):
            return sides
    return {}


def _gap_text(row: Result) -> str:
    if not has_interval(row):
        return f"{signed(row['value'], points_decimals(row))} points (n = {row['n']}, no interval)"
    interval = f"95 % interval for all occupations at once {points_range(row)}"
    tested = f"; p = {row_p_value(row)}".replace("= ≤", "≤").replace("= <", "<") if row["p_value"] is not None else ""
    return f"{signed(row['value'], points_decimals(row))} points ({interval}{tested}; n = {row['n']})"


def _brief_gap(row: Result) -> str:
    more = row["group"] if row["value"] > 0 else row["against"]
    size = points(abs(row["value"]), points_decimals(row))
    return f"“{row['concept']}” {field(row['subset'])} ({plural(more)} by {size} points more)"


def _called_alike(rows: list[Result]) -> Finding:
    widest = rows[0]
    headline = "No wrong occupation is shown to go to women or men more often"
    which = (
        f"The widest of {len(rows)} differences, “{widest['concept']}”" if len(rows) > 1 else f"“{widest['concept']}”"
    )
    tested = f"After correction no difference is shown, {NOT_NONE}"
    verdict = tested if any(map(has_interval, rows)) else "Without an interval nothing is claimed."
    sentence = f"{which} {field(widest['subset'])}, women minus men within branches: {_gap_text(widest)}. {verdict}"
    return finding(widest, "occupations", headline, sentence, verdict=nothing_shown(rows), more=rows[1:])
