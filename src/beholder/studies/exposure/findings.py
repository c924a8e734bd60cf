"""What captions showed, in plain words. About captions and models; nobody is named."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter import phrases as words
from beholder.chapter.finding import Finding, finding, valued
from beholder.chapter.numbers import Result, excludes, has_interval, log_distance, ratio, ratio_decimals, ratio_range
from beholder.studies.exposure.measures import ADJUSTED, EVERYONE, TYPICAL, UNADJUSTED
from beholder.studies.exposure.tables import plain


def exposure_findings(part: pl.DataFrame) -> list[Finding]:
    """Of one set of captions, or of one model beside them."""
    found = [*_named(part), *_ratios(part), *_players(part), *_known(part), *_gap(part)]
    return sorted(found, key=lambda each: not each.shown)


def _named(part: pl.DataFrame) -> Iterator[Finding]:
    """How many are named at all; branches may be one, and then it stands for all."""
    rows = valued(part, "never")
    rows = [row for row in rows if row["subset"] == EVERYONE] or rows
    if not rows:
        return
    captions = valued(part, "category")[0]["n"]
    people = sum(row["n"] for row in rows)
    named = sum(round(row["n"] * (1 - row["value"])) for row in rows)
    said = ", ".join(
        f"{round(row['n'] * (1 - row['value']))} of {row['n']} {words.GROUPS.get(row['group'], row['group'])}"
        for row in rows
    )
    if named:
        headline = f"Captions name {named:,} of {people:,} people"
        sentence = f"At least one of {captions:,} captions names {said}."
    else:
        headline = "No caption names anyone"
        sentence = f"Among {captions:,} captions none names any of {people:,} people: nothing is shown."
    yield finding(rows[0], "named", headline, sentence, shown=named > 0, effect=9.0)


def _ratios(part: pl.DataFrame) -> Iterator[Finding]:
    """Women over men, everywhere and where it is shown, in one breath."""
    rows = [row for row in valued(part, "ratio") if row["concept"] == TYPICAL]
    if not rows:
        return
    row = next((row for row in rows if row["subset"] == EVERYONE), rows[0])
    shown = excludes(row, 1.0)
    bracket = f"95 % interval {ratio_range(row)}" if has_interval(row) else "no interval"
    sentence = (
        f"Captions name a typical woman {ratio(row['value'], ratio_decimals(row))} times as often as a typical man "
        f"(geometric means of 1 + captions; {bracket}, n = {row['n']:,})."
    )
    away = [words.people(each["subset"]) for each in rows if each is not row and excludes(each, 1.0)]
    if len(rows) > 1:
        sentence += f" By branch, the interval excludes 1 for {words.listed(away) if away else 'none'}."
    less = "Women" if row["value"] < 1 else "Men"
    headline = f"{less} are named less" if shown else "No difference between women and men shown"
    yield finding(row, "named", headline, sentence, shown=shown, effect=log_distance(row["value"], 1.0))


def _players(part: pl.DataFrame) -> Iterator[Finding]:
    """Actress beside actor: the one occupation that names a gender."""
    rows = {row["concept"]: row for row in valued(part, "category") if row["group"]}
    if len(rows) == 2 and any(row["value"] for row in rows.values()):
        actress, actor = rows["actress"], rows["actor"]
        sentence = (
            f"“Actress” stands in {actress['value']:,.0f} captions and “actor” in {actor['value']:,.0f}, "
            f"of {actor['n']:,}."
        )
        yield finding(actress, "said", "Actresses and actors", sentence, shown=False)


def _known(part: pl.DataFrame) -> Iterator[Finding]:
    row = _pooled(part, "identity_correlation")
    if row is None:
        return
    shown = excludes(row, 0.0)
    headline = (
        f"Knows {'better' if row['value'] > 0 else 'worse'} whom captions name more"
        if shown
        else "No link shown between captions and known names"
    )
    sentence = (
        f"Within branches, the rank correlation of captions with the probability of the right name is "
        f"{plain(row['value'])} ({_interval(row, 1.0)}; n = {row['n']:,})."
    )
    yield finding(row, "known", headline, sentence, shown=shown, effect=abs(row["value"]))


def _gap(part: pl.DataFrame) -> Iterator[Finding]:
    before, after = (_pooled(part, "identity_gap", concept) for concept in (UNADJUSTED, ADJUSTED))
    if before is None or after is None:
        return
    sentence = (
        f"Women less men, the right name gets {plain(100 * before['value'])} points ({_interval(before, 100.0)}) as "
        f"measured, and {plain(100 * after['value'])} ({_interval(after, 100.0)}) at equal exposure, within branches."
    )
    yield finding(
        before,
        "known",
        "The gender gap in known names, before and after exposure",
        sentence,
        shown=excludes(before, 0.0),
        effect=abs(before["value"]),
    )


def _pooled(part: pl.DataFrame, metric: str, concept: str | None = None) -> Result | None:
    rows = [row for row in valued(part, metric) if row["concept"] == concept]
    return next((row for row in rows if row["subset"] == EVERYONE), rows[0] if len(rows) == 1 else None)


def _interval(row: Result, unit: float) -> str:
    if not has_interval(row):
        return "no interval"
    return f"95 % interval {plain(unit * row['low'])} to {plain(unit * row['high'])}"
