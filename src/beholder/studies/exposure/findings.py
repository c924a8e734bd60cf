"""What captions show, in plain words. The findings are about captions and models; nobody is named."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import NOT_SHOWN, SHOWN, TOO_LITTLE, Finding, finding, valued
from beholder.chapter.numbers import Result, excludes, has_interval, log_distance, ratio, ratio_decimals, ratio_range
from beholder.chapter.phrases import listed, plural
from beholder.studies.exposure.measures import ADJUSTED, EVERYONE, TYPICAL, UNADJUSTED
from beholder.studies.exposure.tables import plain
from beholder.studies.public_figures.phrases import people


def exposure_findings(part: pl.DataFrame) -> list[Finding]:
    """Of one set of captions, or of one model compared with them."""
    findings = [*_named(part), *_ratios(part), *_players(part), *_known(part), *_gap(part)]
    return sorted(findings, key=lambda each: not each.shown)


def _verdict(row: Result, landmark: float) -> str:
    if not has_interval(row):
        return TOO_LITTLE
    return SHOWN if excludes(row, landmark) else NOT_SHOWN


def _named(part: pl.DataFrame) -> Iterator[Finding]:
    """How many people are named at all: over all branches, or in the only one."""
    rows = valued(part, "never")
    rows = [row for row in rows if row["subset"] == EVERYONE] or rows
    if not rows:
        return
    captions = valued(part, "category")[0]["n"]
    everyone = sum(row["n"] for row in rows)
    counts = [round(row["n"] * (1 - row["value"])) for row in rows]
    if sum(counts):
        headline = f"Captions name {sum(counts):,} of {everyone:,} people"
        groups = [f"{count} of {row['n']} {plural(row['group'])}" for count, row in zip(counts, rows, strict=True)]
        sentence = f"At least one of {captions:,} captions names {', '.join(groups)}."
    else:
        headline = "No caption names anyone"
        sentence = f"None of {captions:,} captions names any of {everyone:,} people. Nothing is shown."
    yield finding(rows[0], "named", headline, sentence, shown=sum(counts) > 0, effect=9.0, more=rows[1:])


def _ratios(part: pl.DataFrame) -> Iterator[Finding]:
    """Women over men: over all branches, and the branches that differ."""
    rows = [row for row in valued(part, "ratio") if row["concept"] == TYPICAL]
    if not rows:
        return
    row = next((row for row in rows if row["subset"] == EVERYONE), rows[0])
    branches = [each for each in rows if each is not row]
    bracket = f"95 % interval {ratio_range(row)}" if has_interval(row) else "no interval"
    sentence = (
        f"Captions name a typical woman {ratio(row['value'], ratio_decimals(row))} times as often as a typical man "
        f"(geometric means of 1 + captions; {bracket}, n = {row['n']:,})."
    )
    if branches:
        different = [people(each["subset"]) for each in branches if excludes(each, 1.0)]
        sentence += f" By branch, the interval excludes 1 for {listed(different) if different else 'none'}."
    verdict = _verdict(row, 1.0)
    headline = "No difference between women and men is shown"
    if verdict == SHOWN:
        less, more = ("Women", "men") if row["value"] < 1 else ("Men", "women")
        headline = f"{less} are named less often than {more}"
    effect = log_distance(row["value"], 1.0)
    yield finding(row, "named", headline, sentence, verdict=verdict, effect=effect, more=branches)


def _players(part: pl.DataFrame) -> Iterator[Finding]:
    """Actress and actor: the one occupation whose words name a gender."""
    rows = {row["concept"]: row for row in valued(part, "category") if row["group"]}
    if len(rows) == 2 and any(row["value"] for row in rows.values()):
        actress, actor = rows["actress"], rows["actor"]
        sentence = (
            f"Of {actor['n']:,} captions, {actress['value']:,.0f} contain “actress” and {actor['value']:,.0f} “actor”."
        )
        yield finding(actress, "words", "Actresses and actors", sentence, more=[actor])


def _known(part: pl.DataFrame) -> Iterator[Finding]:
    row = _pooled(part, "identity_correlation")
    if row is None:
        return
    verdict = _verdict(row, 0.0)
    headline = "No link is shown between captions and known names"
    if verdict == SHOWN:
        headline = f"The model knows people {'better' if row['value'] > 0 else 'worse'} whom captions name more often"
    sentence = (
        f"Within branches, the rank correlation of captions with the probability of the right name is "
        f"{plain(row['value'])} ({_interval(row, 1.0)}; n = {row['n']:,})."
    )
    yield finding(row, "known", headline, sentence, verdict=verdict, effect=abs(row["value"]))


def _gap(part: pl.DataFrame) -> Iterator[Finding]:
    before, after = (_pooled(part, "identity_gap", concept) for concept in (UNADJUSTED, ADJUSTED))
    if before is None or after is None:
        return
    sentence = (
        f"The probability of the right name, women minus men, is {plain(100 * before['value'])} points "
        f"({_interval(before, 100.0)}) as measured and {plain(100 * after['value'])} points "
        f"({_interval(after, 100.0)}) at equal exposure, within branches."
    )
    headline, effect = "The gender gap in known names, before and after exposure", abs(before["value"])
    yield finding(before, "known", headline, sentence, verdict=_verdict(before, 0.0), effect=effect, more=[after])


def _pooled(part: pl.DataFrame, metric: str, concept: str | None = None) -> Result | None:
    rows = [row for row in valued(part, metric) if row["concept"] == concept]
    return next((row for row in rows if row["subset"] == EVERYONE), rows[0] if len(rows) == 1 else None)


def _interval(row: Result, unit: float) -> str:
    if not has_interval(row):
        return "no interval"
    return f"95 % interval {plain(unit * row['low'])} to {plain(unit * row['high'])}"
