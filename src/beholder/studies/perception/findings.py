"""Perception's findings: what moves the judgements, for whom, who goes without saying, who comes first.

A difference that is not shown is not called none, and one between photographs is not called an effect.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter import phrases as words
from beholder.chapter.finding import Finding, finding
from beholder.chapter.numbers import Result, excludes, has_interval, percent
from beholder.studies.perception import phrases as said
from beholder.studies.perception import queries as reading

MOST = 3


def perception_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show, in the order to read it."""
    return [found for find in FINDERS for found in find(part)]


def _variant(part: pl.DataFrame) -> Iterator[Finding]:
    unit = reading.unit(part)
    if unit == "cosine":
        return
    what = {
        "P(Yes)": "It was asked whether each caption fits the image: the numbers are its P(Yes).",
        "match logit": "It matches pictures with texts: the numbers are its match logits.",
    }
    sentence = f"{what.get(unit, f'The numbers are in {unit}.')} No published number of the study compares with them."
    mass = reading.rows(part, "answer_mass")["value"]
    sentence += f" {percent(mass[0])} of its probability falls on yes or no." if len(mass) else ""
    row = reading.rows(part, "delta_cosine").row(0, named=True)
    yield finding(row, "variant", "A variant, not the study's cosine", sentence, shown=False)


def _effects(part: pl.DataFrame) -> Iterator[Finding]:
    """What changing one attribute alone does; matched sets only."""
    table = reading.rows(part, "causal_effect")
    if not table.height:
        return
    best = _first_of_each(reading.largest(part, "causal_effect", table.height), "subset")
    clear = [row for row in best if reading.shown(row)]
    quiet = [said.attribute(row["subset"]) for row in best if not reading.shown(row)]
    if not clear:
        sentence = f"No effect of {words.listed(quiet)} is shown after correction; that is not the same as none."
        yield finding(best[0], "effect", "No attribute's effect is shown", sentence, shown=False)
        return
    top = clear[0]
    mover = said.attribute(top["subset"]).capitalize()
    headline = f"{mover} moves its judgement most, at {said.dimension(top['concept'])}"
    then = [_effect(row) for row in clear[:MOST]]
    sentence = f"All else the same: {'; '.join(then)} ({said.unit(top)}, 95 % intervals over {top['n']} identities)."
    sentence += f" Not shown for {words.listed(quiet)}." if quiet else ""
    yield finding(top, "effect", headline, sentence, shown=True)


def _effect(row: Result) -> str:
    first, second = said.pair(row)
    whose = (
        f"{said.attribute(row['subset'])} {first} for {second}"
        if row["subset"] not in ("race", "gender")
        else f"{first} for {second}"
    )
    return f"{whose} changes {said.dimension(row['concept'])} by {said.signed(row)} ({said.bounds(row)})"


def _first_of_each(found: list[Result], key: str) -> list[Result]:
    kept: dict[str, Result] = {}
    for row in found:
        kept.setdefault(row[key], row)
    return list(kept.values())


def _interactions(part: pl.DataFrame) -> Iterator[Finding]:
    found = reading.largest(part, "interaction", 10**6)
    if not found:
        return
    clear = [row for row in found if reading.shown(row)]
    if not clear:
        sentence = f"None of {len(found)} differences of slopes is shown after correction; that is not none."
        yield finding(
            found[0],
            "interaction",
            "What an attribute does is not shown to differ between groups",
            sentence,
            shown=False,
        )
        return
    row = clear[0]
    varied = row["subset"].partition(" × ")[0]
    first, second = said.pair(row)
    headline = f"{said.attribute(varied).capitalize()} does not do the same for everyone"
    more = "more" if row["value"] > 0 else "less"
    size = said.number({**row, "value": abs(row["value"])})
    sentence = (
        f"Over its whole range it moves {said.dimension(row['concept'])} by {size} "
        f"{more} for {first} than for {second} ({said.bounds(row)}, {said.unit(row)}); "
        f"{len(clear)} of {len(found)} such differences are shown after correction."
    )
    yield finding(row, "interaction", headline, sentence, shown=True)


def _gaps(part: pl.DataFrame) -> Iterator[Finding]:
    """Differences between groups of photographs: not effects, since photographs differ in more than the label."""
    if reading.rows(part, "causal_effect").height:
        return
    for attribute in ("race", "skin_tone", "gender"):
        found = reading.largest(part, "gap", 10**6, subset=attribute)
        if not found:
            continue
        clear = [row for row in found if reading.shown(row)]
        if not clear:
            sentence = f"None of {len(found)} differences between groups is shown after correction; that is not none."
            yield finding(
                found[0], "gap", f"By {said.attribute(attribute)}: no difference shown", sentence, shown=False
            )
            continue
        row = clear[0]
        first, second = said.pair(row)
        higher, lower = (first, second) if row["value"] > 0 else (second, first)
        size = {**row, "value": abs(row["value"])}
        headline = f"By {said.attribute(attribute)}: widest at {said.dimension(row['concept'])}, {higher} above {lower}"
        sentence = (
            f"Δ differs by {said.number(size)} ({said.bounds(row)} for {first} less {second}; {said.unit(row)}, "
            f"n = {row['n']}); {len(clear)} of {len(found)} differences are shown after correction. "
            "Photographs differ in more than the label."
        )
        yield finding(row, "gap", headline, sentence, shown=True)


def _markedness(part: pl.DataFrame) -> Iterator[Finding]:
    for attribute in ("race", "gender"):
        table = reading.rows(part, "markedness").filter(pl.col("subset") == attribute, pl.col("n") > 0)
        if table.height < 2:
            continue
        found = table.sort("value", descending=True).to_dicts()
        most, least = found[0], found[-1]
        apart = most["low"] is not None and least["high"] is not None and most["low"] > least["high"]
        listed = ", ".join(f"{row['group']} {_share(row)}" for row in found)
        headline = (
            f"{most['group']} goes without saying more than {least['group']}"
            if apart
            else f"By {attribute}, no group is shown to go without saying more than another"
        )
        sentence = f"The plain “person” fits better than the group's own word in {listed} of a group's images."
        yield finding(most, "markedness", headline, sentence, shown=apart)


def _share(row: Result) -> str:
    """Per cent with its interval, where there is one."""
    bounds = f" ({row['low']:.0f}–{row['high']:.0f})" if row["low"] is not None else ""
    return f"{row['value']:.0f} %{bounds}"


def _ranking(part: pl.DataFrame) -> Iterator[Finding]:
    """Who comes first, mean over the dimensions, at the largest k there is."""
    table = reading.rows(part, "skew").filter(pl.col("concept") == "mean")
    for (subset,), mine in table.group_by(["subset"], maintain_order=True):
        top = mine.filter(pl.col("template") == mine["template"][0]).sort("value").to_dicts()
        least, most = top[0], top[-1]
        clear = [row for row in (most, least) if reading.shown(row)]
        if not clear or str(subset) not in ("race", "gender"):
            continue
        k = most["template"].removeprefix("k=")
        even = {row["group"]: _times(row["value"]) for row in (most, least)}
        headline = f"At the top of its rankings, {most['group']} over {least['group']}"
        sentence = (
            f"Ranked by each dimension, the first {k} of {most['n']} images hold {most['group']} "
            f"{even[most['group']]} and {least['group']} {even[least['group']]} as often as an even share "
            "(geometric mean over the dimensions)."
        )
        yield finding(most, "ranking", headline, sentence, shown=True)


def _neutral(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether taking the neutral prompt away brings groups together or sets them apart, where they differ at all."""
    if not any(reading.shown(row) for row in reading.rows(part, "gap").to_dicts()):
        return
    for row in reading.rows(part, "narrowing").filter(pl.col("concept") == "groups").to_dicts():
        if not excludes(row, 1.0):
            continue
        way = "apart" if row["value"] > 1 else "together"
        headline = f"Taking the neutral prompt away {'sets' if way == 'apart' else 'brings'} the groups {way}"
        sentence = (
            f"The groups' mean scores lie {said.number(row)} times as far apart ({said.bounds(row)}) once each image's "
            "score of the neutral prompt is subtracted."
        )
        yield finding(row, "neutral", headline, sentence, shown=True)


def _times(skew: float) -> str:
    return f"{2.718281828459045**skew:.2f} times"


def _ratings(part: pl.DataFrame) -> Iterator[Finding]:
    found = reading.rows(part, "rating_r").sort("value", descending=True).to_dicts()
    if not found:
        return
    agree = [row for row in found if reading.shown(row) and row["value"] > 0]
    listed = "; ".join(
        f"{said.dimension(row['concept'])} r = {said.number(row)} ({_interval_and(row)}n = {row['n']})"
        for row in found[:8]
    )
    headline = f"It orders {found[0]['subset']}s as people do on {len(agree)} of {len(found)} traits, after correction"
    yield finding(found[0], "ratings", headline, f"{listed}.{_departure(part)}", shown=bool(agree))


def _interval_and(row: Result) -> str:
    return f"{said.bounds(row)}, " if has_interval(row) else ""


def _departure(part: pl.DataFrame) -> str:
    """Where the model lies farthest from people."""
    found = reading.largest(part, "rating_departure", 1)
    if not found:
        return ""
    (row,) = found
    way = "above" if row["value"] > 0 else "below"
    where = f"{said.dimension(row['concept'])} of {row['group']}"
    return f" It departs most at {where}: {abs(row['value']):.2f} standard deviations {way} people's ratings."


FINDERS = (_variant, _effects, _interactions, _gaps, _markedness, _ranking, _neutral, _ratings)
