"""Findings about women and men: the ratio b, and wrong occupations that one of them gets more belief in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from beholder.chapter.finding import Finding, finding, one_row, valued, verdict_of_rows
from beholder.chapter.numbers import (
    Result,
    drawn,
    has_interval,
    listed,
    log_distance,
    percent,
    plural,
    points,
    points_decimals,
    points_range,
    ratio,
    ratio_decimals,
    ratio_range,
    row_p_value,
    signed,
)
from beholder.comparison import DIFFERENCE, TOO_LITTLE
from beholder.studies.public_figures.levels import GROUPS
from beholder.studies.public_figures.phrases import (
    PLAYERS_PLURAL,
    claimed_ratios,
    correct_occupation,
    either_word,
    field,
    found,
    people,
    within_branches,
    word_pair,
)

SLIGHT = 1.05
"""A ratio whose whole interval lies between 1/1.05 and 1.05 is called nearly the same."""


# Gender ratio

Sides = dict[str, Result]
"""The probability of the right occupation for women and for men; empty where it was not measured for both."""


def ratio_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """Every pool in which women and men differ, and every branch of a pool in which they do not; then the rest."""
    rows, sides = claimed_ratios(part), _right_probabilities(part)
    different = {row["subset"] for row in rows if found(row)}
    branches = [row for row in valued(part, "branch_ratio") if found(row) and row["concept"] not in different]
    for row in (*filter(found, rows), *branches):
        yield _difference(row, sides.get(row["subset"], {}), part)
    named = different | {row["concept"] for row in branches}
    if alike := [row for row in rows if row["subset"] not in named]:
        yield _no_difference(alike, sides, part)


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
    """Whether the whole interval lies so near 1 that the difference, though found, has no weight."""
    return has_interval(row) and 1 / SLIGHT <= row["low"] <= row["high"] <= SLIGHT


def _difference(row: Result, sides: Sides, part: pl.DataFrame) -> Finding:
    headline, reach = _less_headline(row, sides), "The interval holds for all ratios at once and excludes 1."
    if slight(row):
        who = "Drawn women and men" if drawn(row["dataset"]) else "Women and men"
        headline = f"{who} {_where(row)} get nearly the same probability of the right occupation"
        reach = "The interval holds for all ratios at once, excludes 1 and lies within 5 % of it."
    beside = [_published_beside(row, part), _branches(row, part), _other_options(row, part)]
    told = (_ratio_sentence(row, sides, part), reach, *(each.text for each in beside))
    sentence, effect = " ".join(filter(None, told)), log_distance(row["value"], 1.0)
    more = [*sides.values(), *(each for one in beside for each in one.rows)]
    return finding(row, "bias", headline, sentence, verdict=DIFFERENCE, effect=effect, more=more)


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
    """b of every branch of the pool; of a branch, those of the other branches and of the pool."""
    pool = _pool(row)
    rows = [
        each for each in valued(part, "branch_ratio") if each["concept"] == pool and each["subset"] != row["subset"]
    ]
    rows += [each for each in claimed_ratios(part) if each["subset"] == pool != row["subset"]]
    if not rows:
        return Beside()
    names = {pool: "all together"}
    listing = ", ".join(f"{names.get(each['subset'], people(each['subset']))} {ratio(each['value'])}" for each in rows)
    return Beside(f"{'By branch' if pool == row['subset'] else 'Beside them'}: {listing}.", tuple(rows))


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


def _pool(row: Result) -> str:
    """The pool of a ratio: a branch's row names it."""
    return str(row["concept"] or row["subset"])


def _where(row: Result) -> str:
    """`in politics`, or of a branch `among senators`."""
    return field(row["subset"]) if row["concept"] is None else f"among {people(row['subset'])}"


def _less_headline(row: Result, sides: Sides) -> str:
    """Who gets a lower mean probability of what they are than whom, and how much."""
    less, more = GROUPS if row["value"] < 1 else GROUPS[::-1]
    shares = ""
    if sides and (sides[less]["value"] < sides[more]["value"]):
        texts = told_apart(sides[less], sides[more])
        shares = f": {' against '.join(texts)}" if len(set(texts)) > 1 else ""
    who, than = f"{_group(row, less)} {_where(row)}", _group(row, more)
    if _own_words(row):
        who, than = PLAYERS_PLURAL[less], f"{PLAYERS_PLURAL[more]} of “{correct_occupation(_pool(row), more)}”"
    return f"{who[:1].upper()}{who[1:]} get a lower mean probability of {_right_words(row, less)} than {than}{shares}"


def _own_words(row: Result) -> bool:
    """Whether women are asked about one word and men about another: the published measure of actors."""
    return row["subset"] == "actors" and not row["metric"].endswith("either_word_ratio")


def _right_words(row: Result, group: str) -> str:
    word = correct_occupation(_pool(row), group)
    return " or ".join(f"“{each}”" for each in ((word,) if _own_words(row) else word_pair(word) or (word,)))


def _group(row: Result, group: str) -> str:
    return f"drawn {plural(group)}" if drawn(row["dataset"]) else plural(group)


def told_apart(*rows: Result) -> list[str]:
    """Probabilities with as many decimals as it takes to tell them apart."""
    values = [row["value"] for row in rows]
    texts = [[percent(value, places) for value in values] for places in (None, 1, 2)]
    return next((each for each in texts if len(set(each)) > 1), texts[0])


def _ratio_sentence(row: Result, sides: Sides, part: pl.DataFrame) -> str:
    """Both probabilities and their ratio; within branches, where that is what decides."""
    metric = row["metric"].partition(".")[2]
    published = one_row(part, metric, subset=row["subset"]) if within_branches(row) else None
    shown = published or row
    value = ratio(shown["value"], ratio_decimals(shown))
    who = [f"{_group(row, 'woman')} {_where(row)}", _group(row, "man")]
    that = ""
    if _own_words(row):
        who, that = list(PLAYERS_PLURAL.values()), f"that of {_right_words(row, 'man')} "
    if not sides:
        compared = f"for {who[0]} is {value} times {that or 'that '}for {who[1]}"
    else:
        first, second = told_apart(*(sides[group] for group in GROUPS))
        compared = f"is {first} for {who[0]}, and {that}{second} for {who[1]}: a ratio of {value}"
    within = f"; within branches {ratio(row['value'], ratio_decimals(row))}" if published else ""
    remark = f" {row['note'][0].upper()}{row['note'][1:]}." if row["note"] else ""
    words = _right_words(row, "woman")
    return f"The mean probability of {words} {compared}{within} ({_ratio_bracket(row, sides)}).{remark}"


def _ratio_bracket(row: Result, sides: Sides) -> str:
    sizes = f"{sides['woman']['n']} women, {sides['man']['n']} men" if sides else f"n = {row['n']}"
    return f"95 % interval {ratio_range(row)}; {sizes}" if has_interval(row) else f"no interval; {sizes}"


def _no_difference(rows: list[Result], sides: dict[str, Sides], part: pl.DataFrame) -> Finding:
    """Several pools in one finding, so that what is not found does not fill the page."""
    verdict, pools = verdict_of_rows(rows), listed([row["subset"] for row in rows])
    headline = f"No gender difference was found for {pools}"
    if verdict == TOO_LITTLE:
        headline = f"Too few people to compare women and men: {pools}"
    claim = f"Women over men: {', '.join(map(_ratio_brief, rows))}."
    if len(rows) == 1:
        claim = _ratio_sentence(rows[0], sides.get(rows[0]["subset"], {}), part)
    possible = ""
    if known := [row for row in rows if has_interval(row)]:
        low, high = min(row["low"] for row in known), max(row["high"] for row in known)
        possible = f"Ratios as low as {ratio(low)} or as high as {ratio(high)} are still possible."
    published = [each for row in rows if (each := _published_beside(row, part)).text]
    sentence = " ".join(filter(None, [claim, possible, *(each.text for each in published)]))
    more = [*rows[1:], *(side for row in rows for side in sides.get(row["subset"], {}).values())]
    more += [row for each in published for row in each.rows]
    return finding(rows[0], "bias", headline, sentence, verdict=verdict, more=more)


def _ratio_brief(row: Result) -> str:
    either = " (either word)" if row["metric"].endswith("either_word_ratio") else ""
    return f"{row['subset']}{either} {_ratio_and_range(row)}"


# Wrong occupations


def wrong_occupation_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """The widest difference that was found, and how many others were, over pools and branches."""
    table = part.filter(pl.col("metric").str.ends_with(".occupation_gap"), pl.col("value").is_not_null())
    rows = sorted(table.to_dicts(), key=lambda row: (within_branches(row), -abs(row["value"])))
    if not rows:
        return
    there = [row for row in rows if found(row)]
    yield _given_more(there, len(rows), part) if there else _given_alike(rows)


def _given_more(rows: list[Result], tests: int, part: pl.DataFrame) -> Finding:
    first = rows[0]
    more, less = (first["group"], first["against"]) if first["value"] > 0 else (first["against"], first["group"])
    sides = _sides_of(first, part)
    shares = ""
    if sides and (sides[GROUPS[0]]["value"] - sides[GROUPS[1]]["value"]) * first["value"] > 0:
        shares = f": {' against '.join(told_apart(sides[more], sides[less]))}"
    who = f"{_group(first, more)} {_gap_place(first)}"
    given = f"get a higher mean probability of “{first['concept']}”, a wrong answer, than {_group(first, less)}"
    others = list({row["concept"]: row for row in reversed(rows) if row["concept"] != first["concept"]}.values())[::-1]
    many = f" {len(rows)} of {tests} differences in wrong occupations were found" if len(rows) > 1 else ""
    also = f": also {listed([_brief_gap(row) for row in others[:3]])}" if many and others else ""
    rest = f" and {len(others) - 3} more occupations" if len(others) > 3 else ""
    sentence = f"Women minus men: {_gap_text(first)}.{f'{many}{also}{rest}.' if many else ''}"
    headline = f"{who[:1].upper()}{who[1:]} {given}{shares}"
    evidence = [*sides.values(), *rows[1:]]
    return finding(first, "occupations", headline, sentence, verdict=DIFFERENCE, effect=1.0, more=evidence)


def _gap_place(row: Result) -> str:
    """`in politics`, or of a branch `among senators`."""
    return f"among {people(row['subset'])}" if within_branches(row) else field(row["subset"])


def _sides_of(row: Result, part: pl.DataFrame) -> Sides:
    """The probabilities of a gap's occupation for women and for men."""
    for metric in ("either_word_probability", "occupation_probability"):
        place = {"subset": row["subset"], "concept": row["concept"]}
        sides = {group: each for group in GROUPS if (each := one_row(part, metric, group=group, **place))}
        if len(sides) == len(GROUPS):
            return sides
    return {}


def _gap_text(row: Result) -> str:
    value = f"{signed(row['value'], points_decimals(row))} points"
    if not has_interval(row):
        return f"{value} (n = {row['n']}, no interval)"
    tested = f"p = {row_p_value(row)}".replace("= ≤", "≤").replace("= <", "<")
    return f"{value} (95 % interval {points_range(row)} and {tested}, for all occupations at once; n = {row['n']})"


def _brief_gap(row: Result) -> str:
    more = row["group"] if row["value"] > 0 else row["against"]
    size = points(abs(row["value"]), points_decimals(row))
    return f"“{row['concept']}” {_gap_place(row)} ({plural(more)} by {size} points more)"


def _given_alike(rows: list[Result]) -> Finding:
    widest, verdict = rows[0], verdict_of_rows(rows)
    headline = "No wrong occupation was found to get more belief for women or for men"
    if verdict == TOO_LITTLE:
        headline = "Too few people to compare wrong occupations of women and men"
    which = (
        f"The widest of {len(rows)} differences, “{widest['concept']}”" if len(rows) > 1 else f"“{widest['concept']}”"
    )
    reach = [max(abs(row["low"]), abs(row["high"])) for row in rows if has_interval(row)]
    possible = f" Differences of up to {points(max(reach))} points are still possible." if reach else ""
    sentence = f"{which} {_gap_place(widest)}, women minus men: {_gap_text(widest)}.{possible}"
    return finding(widest, "occupations", headline, sentence, verdict=verdict, more=rows[1:])
