"""What captions show, in plain words. The findings are about captions and models; nobody is named."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding, valued
from beholder.chapter.numbers import Result, has_interval, log_distance, ratio, ratio_decimals, ratio_range, row_p_value
from beholder.chapter.phrases import count, listed, plural
from beholder.comparison.verdicts import DIFFERENCE, NONE_FOUND, TOO_LITTLE
from beholder.studies.exposure.measures import ADJUSTED, UNADJUSTED
from beholder.studies.exposure.queries import shown, typical_ratios
from beholder.studies.exposure.ratios import CRUDE, EVERYONE, TYPICAL
from beholder.studies.exposure.tables import plain
from beholder.studies.public_figures.phrases import people


def exposure_findings(part: pl.DataFrame) -> list[Finding]:
    """Of one set of captions, or of one model compared with them."""
    findings = [*_named(part), *_ratios(part), *_players(part), *_known(part), *_gap(part)]
    return sorted(findings, key=lambda each: not each.shown)


def _verdict(row: Result) -> str:
    if not has_interval(row):
        return TOO_LITTLE
    return DIFFERENCE if shown(row) else NONE_FOUND


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
    """Women over men: over all branches at equal branches, and the branches that differ."""
    rows = [row for row in typical_ratios(part) if row["value"] is not None]
    branches = [row for row in rows if row["subset"] != EVERYONE]
    several = len({row["subset"] for row in valued(part, "captions")}) > 1
    row = next((row for row in rows if several == (row["subset"] == EVERYONE)), None)
    if row is None:
        return
    sentence = f"Captions name a typical woman {_times(row)} times as often as a typical man"
    sentence += f"{' of her branch' if several else ''} ({_ratio_bracket(row)})."
    crude = [each for each in valued(part, "ratio") if each["concept"] == CRUDE[TYPICAL]]
    sentence += "".join(map(_crude_sentence, crude)) + (_branch_sentence(branches) if several else "")
    verdict = _verdict(row)
    headline = f"No difference between women and men is shown{' over all branches' if several else ''}"
    if verdict == DIFFERENCE:
        less, more = ("Women", "men") if row["value"] < 1 else ("Men", "women")
        headline = f"{less} are named less often than {more}"
    others = [each for each in (*branches, *crude) if each is not row]
    effect = log_distance(row["value"], 1.0)
    yield finding(row, "named", headline, sentence, verdict=verdict, effect=effect, more=others)


def _times(row: Result) -> str:
    return ratio(row["value"], ratio_decimals(row))


def _ratio_bracket(row: Result) -> str:
    bounds = f"95 % interval {ratio_range(row)}, p {row_p_value(row)}" if has_interval(row) else "no interval"
    return f"geometric means of 1 + captions; {bounds}, n = {row['n']:,}"


def _crude_sentence(row: Result) -> str:
    """The crude ratio, and why it is not the one to read."""
    bounds = f"95 % interval {ratio_range(row)}" if has_interval(row) else "no interval"
    return (
        f" Over all people at once the ratio is {_times(row)} ({bounds}); that ratio also follows which branches are "
        "named often."
    )


def _branch_sentence(branches: list[Result]) -> str:
    """Which branches differ and in which direction, after correction for their number."""
    parts = []
    for word, below in (("less", True), ("more", False)):
        names = [people(row["subset"]) for row in branches if shown(row) and (row["value"] < 1) == below]
        parts += [f"women are shown to be named {word} often among {listed(names)}"] if names else []
    return (
        f" Branch by branch, corrected for {count(len(branches))} branches, "
        f"{listed(parts) if parts else 'no difference is shown'}."
    )


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
    verdict = _verdict(row)
    headline = "No link is shown between captions and known names"
    if verdict == DIFFERENCE:
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
    verdict, word = _verdict(before), "better" if before["value"] > 0 else "less well"
    shown_gap = f"The model knows women {word} by name than men"
    headline = shown_gap if verdict == DIFFERENCE else "No gender gap in known names is shown"
    yield finding(before, "known", headline, sentence, verdict=verdict, effect=abs(before["value"]), more=[after])


def _pooled(part: pl.DataFrame, metric: str, concept: str | None = None) -> Result | None:
    rows = [row for row in valued(part, metric) if row["concept"] == concept]
    return next((row for row in rows if row["subset"] == EVERYONE), rows[0] if len(rows) == 1 else None)


def _interval(row: Result, unit: float) -> str:
    if not has_interval(row):
        return "no interval"
    return f"95 % interval {plain(unit * row['low'])} to {plain(unit * row['high'])}"
