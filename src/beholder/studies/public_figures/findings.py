"""Findings about public figures.

Few, the largest effects first, and no more than the intervals carry: an interval that holds the landmark is
reported as "not shown", which is not the same as "none".
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter import phrases as words
from beholder.chapter.family_correction import ALPHA, log, surviving
from beholder.chapter.finding import Finding, finding, valued
from beholder.chapter.numbers import (
    Result,
    chance,
    decimals_for,
    excludes,
    has_interval,
    log_distance,
    options,
    percent,
    ratio,
    ratio_decimals,
    ratio_range,
    span,
    times,
    uncertainty,
)
from beholder.studies.public_figures.planted import Comparison, comparisons

KINDS = ("planted", "bias", "association", "identity", "custom")
SLIGHT = 1.05
"""A ratio whose whole interval lies between 1/1.05 and 1.05 is called nearly the same."""
Counts = dict[tuple[str, str], int]
"""Images by pool and group."""


def public_figure_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show: what is shown first, then by kind and size."""
    makers = (_planted, _bias, _association, _identity)
    made = [finding for make in makers for finding in make(part)]
    return sorted(made, key=lambda each: (not each.shown, KINDS.index(each.kind), -each.effect))


# Gender ratio


def _bias(part: pl.DataFrame) -> Iterator[Finding]:
    counts = {(row["subset"], row["group"]): row["n"] for row in valued(part, "occupation_probability")}
    rows = valued(part, "bias_ratio")
    off = _off_one(rows)
    for row in off:
        yield _slight(row, counts) if slight(row) else _difference(row, counts)
    alike = [row for row in rows if row not in off]
    if alike:
        yield _no_difference(alike, counts, len(rows))


def _off_one(rows: list[Result]) -> list[Result]:
    """The ratios that differ from 1 after correction: by their own p, corrected over the pools, where they have it."""
    if all(row.get("p_value") is not None for row in rows):
        return [row for row in rows if excludes(row, 1.0) and row["p_value"] <= ALPHA]
    return surviving(rows, lambda row: 1.0, log)


def _difference(row: Result, counts: Counts) -> Finding:
    who = "Women" if row["value"] < 1 else "Men"
    sentence = f"{_ratio_claim(row, counts)}: the interval excludes 1."
    effect = log_distance(row["value"], 1.0)
    return finding(row, "bias", f"{who} among {row['subset']} get less", sentence, shown=True, effect=effect)


def slight(row: Result) -> bool:
    """Whether the whole interval lies so near 1 that the difference, though shown, is of no weight."""
    return has_interval(row) and 1 / SLIGHT <= row["low"] <= row["high"] <= SLIGHT


def _slight(row: Result, counts: Counts) -> Finding:
    sentence = f"{_ratio_claim(row, counts)}: the interval excludes 1, and lies within 5 % of it."
    headline = f"Women and men among {row['subset']} get nearly the same"
    return finding(row, "bias", headline, sentence, shown=True, effect=log_distance(row["value"], 1.0))


def _no_difference(rows: list[Result], counts: Counts, pools: int) -> Finding:
    """Several pools in one breath: what is not shown should not fill the page."""
    headline = f"No gender difference shown for {words.listed([row['subset'] for row in rows])}"
    claim = _ratio_claim(rows[0], counts) if len(rows) == 1 else f"Women over men: {', '.join(map(_ratio_brief, rows))}"
    near = [row["subset"] for row in rows if excludes(row, 1.0)]
    if near:
        verdict = (
            f". The interval of {words.listed(near)} excludes 1, but one of {words.count(pools)} may do so by chance: "
            "after correction no difference is shown, which is not the same as none."
        )
    elif any(map(has_interval, rows)):
        subject = ": the interval does not exclude" if len(rows) == 1 else "; no 95 % interval excludes"
        verdict = f"{subject} 1. No difference is shown, which is not the same as none."
    else:
        verdict = ": without an interval nothing is claimed."
    return finding(rows[0], "bias", headline, f"{claim}{verdict}", shown=False)


def _ratio_brief(row: Result) -> str:
    interval = f" ({ratio_range(row)})" if has_interval(row) else ""
    return f"{row['subset']} {ratio(row['value'], ratio_decimals(row))}{interval}"


def _ratio_claim(row: Result, counts: Counts) -> str:
    pool, value = row["subset"], ratio(row["value"], ratio_decimals(row))
    bracket = _ratio_bracket(row, counts)
    if pool == "actors":
        return f"Actresses get {value} times the probability of “actress” that actors get of “actor” ({bracket})"
    who, word = "Drawn women" if words.drawn(row["dataset"]) else "Women", words.singular(pool)
    return f"{who} among the {pool} get {value} times the probability of “{word}” that men get ({bracket})"


def _ratio_bracket(row: Result, counts: Counts) -> str:
    women, men = (counts.get((row["subset"], group)) for group in ("woman", "man"))
    who = f"{women} women, {men} men" if women and men else f"n = {row['n']}"
    return f"no interval; {who}" if not has_interval(row) else f"95 % interval {ratio_range(row)}; {who}"


# Association


def _association(part: pl.DataFrame) -> Iterator[Finding]:
    rows = [row for row in valued(part, "association") if row["benchmark"] != "custom"]
    if not rows:
        return
    top1 = {(row["subset"], row["concept"]): row for row in valued(part, "association_top1")}
    hard = [row for row in rows if row["concept"] == "specialty" and chance(row)]
    yield _levels(rows)
    weakest = min(hard, key=lambda row: row["value"] * (options(row) or 1), default=None)
    if weakest and weakest["value"] < 0.5:  # a weakness only where most belief goes elsewhere
        yield _weakest(weakest, top1)


def _levels(rows: list[Result]) -> Finding:
    """How far belief falls from the easy level to the hard one."""
    ranges = {level: [row["value"] for row in rows if row["concept"] == level] for level in words.LEVELS}
    said = [f"the right {level} {span(values)}" for level, values in ranges.items() if values]
    branches = len({row["subset"] for row in rows})
    where = f"Over {words.count(branches)} branches, it gives" if branches > 1 else "It gives"
    above = sum(excludes(row, level) and row["value"] > level for row in rows if (level := chance(row)))
    beside = f"{above} of {len(rows)} intervals lie above chance"
    sentence = f"{where} {words.listed(said)} of its belief on average; {beside}."
    headline, shown = "What it makes of people, level by level", above > len(rows) / 2
    return finding(rows[0], "association", headline, sentence, shown=shown, effect=9.0)


def _weakest(row: Result, top1: dict[tuple[str, str], Result]) -> Finding:
    """The specialty that stands nearest to chance, or farthest below it."""
    branch, level, places = row["subset"], chance(row) or 1.0, decimals_for(row)
    off = excludes(row, level)
    verdict = ("above" if row["value"] > level else "below") if off else "not distinguishable from"
    first = top1.get((branch, "specialty"))
    beside = f"; the right one comes first for {percent(first['value'])} of the images" if first else ""
    sentence = (
        f"Given a {words.picture(row)} of {words.someone(branch)} and {words.count(options(row) or 0)} "
        f"{words.specialties(branch)} to choose from, it puts {percent(row['value'], places)} of its belief on "
        f"the right one ({uncertainty(row, decimals=places)}; chance is {percent(level)}){beside}."
    )
    headline = f"Weakest specialty: {branch}, {verdict} chance"
    return finding(row, "association", headline, sentence, shown=off, effect=log_distance(row["value"], level))


# Identity


def _identity(part: pl.DataFrame) -> Iterator[Finding]:
    given_image = [row for row in valued(part, "identity_given_image") if chance(row)]
    if not given_image:
        return
    known = [row for row in surviving(given_image, chance) if row["value"] > (chance(row) or 1.0)]
    yield _knows_names(given_image, known) if known else _at_chance(given_image)


def _knows_names(rows: list[Result], known: list[Result]) -> Finding:
    ranked = sorted(known, key=lambda row: -row["value"])
    rest = [words.people(row["subset"]) for row in rows if row not in known]
    where = words.listed([words.people(row["subset"]) for row in ranked]) if rest else "every branch"
    ends = [_name_share(row) for row in (ranked if len(ranked) < 3 else (ranked[0], ranked[-1]))]
    sentence = f"Given a {words.picture(rows[0])}, the right name gets {'; '.join(ends)}."
    sentence += f" Not distinguishable from chance: {words.listed(rest)}." if rest else ""
    effect = log_distance(ranked[0]["value"], chance(ranked[0]) or 1)
    return finding(rows[0], "identity", f"Tells people apart by name: {where}", sentence, shown=True, effect=effect)


def _name_share(row: Result) -> str:
    places, number, who = decimals_for(row), options(row) or 1, words.people(row["subset"])
    return (
        f"{percent(row['value'], places)} among {number} names of {who} "
        f"({uncertainty(row, decimals=places)}; {times(row['value'] * number)} times chance)"
    )


def _at_chance(rows: list[Result]) -> Finding:
    over = [row["value"] * (options(row) or 1) for row in rows]
    much = f"{min(over):.2f} to {max(over):.2f} times" if len(over) > 1 else f"{over[0]:.2f} times"
    where = f"{words.count(len(rows))} branches" if len(rows) > 1 else words.people(rows[0]["subset"])
    sentence = (
        f"Given a {words.picture(rows[0])}, the right name gets {much} what chance gives it "
        f"({where}, n = {sum(row['n'] for row in rows)}): {_above(rows)} above chance."
    )
    return finding(rows[0], "identity", "Does not tell people apart by name", sentence, shown=False)


def _above(rows: list[Result]) -> str:
    above = [row for row in rows if excludes(row, level := chance(row) or 1.0) and row["value"] > level]
    return "after correction for their number no interval lies" if above else "no interval lies"


# The embedded world


def _planted(part: pl.DataFrame) -> Iterator[Finding]:
    """How well the audit recovers what was planted in the reference model."""
    ratios = [found for found in comparisons(part) if found.metric.endswith("bias_ratio") and found.value is not None]
    if not ratios:
        return
    sentence = f"Women over men, {'; '.join(_recovered(found) for found in ratios)}. "
    farthest = max(abs(found.off) for found in ratios if found.off is not None)
    sentence += f"The audit comes within {farthest:.3f} of every planted ratio."
    yield finding(part.row(0, named=True), "planted", "Planted beside recovered", sentence, shown=True)


def _recovered(found: Comparison) -> str:
    interval = "" if found.low is None else f" ({found.low:.2f}–{found.high:.2f})"
    return f"{found.subset}: planted {found.planted:.2f}, recovered {found.value:.2f}{interval}"
