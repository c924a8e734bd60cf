"""What captions show, in plain words. The findings are about captions and models; nobody is named."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding, valued, verdict_of_rows
from beholder.chapter.numbers import (
    Result,
    has_interval,
    listed,
    log_distance,
    plural,
    ratio,
    ratio_decimals,
    row_p_value,
)
from beholder.comparison import DIFFERENCE, FACT, NONE_FOUND
from beholder.studies.exposure.measures import ADJUSTED, CRUDE, EVERYONE, TYPICAL, UNADJUSTED
from beholder.studies.exposure.tables import found, plain, typical_ratios
from beholder.studies.public_figures.phrases import people

BELIEF = "belief in the right name, over that in the names of other people with the same labels,"


def exposure_findings(part: pl.DataFrame) -> list[Finding]:
    """Of one set of captions, or of one model compared with them."""
    findings = [*_named(part), *_ratios(part), *_players(part), *_known(part), *_gap(part)]
    return sorted(findings, key=lambda each: not each.shown)


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
        groups = [f"{count:,} of {row['n']:,} {plural(row['group'])}" for count, row in zip(counts, rows, strict=True)]
        sentence = f"At least one of {captions:,} captions names {', '.join(groups)}."
    else:
        headline = "No caption names anyone"
        sentence = f"None of {captions:,} captions names any of {everyone:,} people."
    yield finding(rows[0], "named", headline, sentence, verdict=FACT, effect=9.0, more=rows[1:])


def _ratios(part: pl.DataFrame) -> Iterator[Finding]:
    """Women over men: over all branches at equal branches, and the branches that differ."""
    row, branches = _pooled([row for row in typical_ratios(part) if row["value"] is not None])
    if row is None:
        return
    less, more = ("Women", "men") if row["value"] < 1 else ("Men", "women")
    verdict, headline = _headline(
        (row, branches),
        f"{less} are named less often than {more}",
        "Women and men are named unequally often in some branches",
        "No difference between how often women and men are named was found",
        "Too few people to compare how often women and men are named",
    )
    sentence = f"Captions name a typical woman {_times(row)} times as often as a typical man"
    sentence += f"{' of her branch' if branches else ''} (geometric means of 1 + captions; {_bracket(row)})."
    crude = [each for each in valued(part, "ratio") if each["concept"] == CRUDE[TYPICAL]]
    sentence += _still(row) + "".join(map(_crude_sentence, crude))
    sentence += _branch_sentence(branches, "women are named", ("less often", "more often"), 1.0)
    effect = log_distance(row["value"], 1.0)
    yield finding(row, "named", headline, sentence, verdict=verdict, effect=effect, more=[*branches, *crude])


def _pooled(rows: list[Result]) -> tuple[Result | None, list[Result]]:
    """The row over all branches and those of the branches; the only row, if there is one branch."""
    pooled = next((row for row in rows if row["subset"] == EVERYONE), rows[0] if len(rows) == 1 else None)
    return pooled, [row for row in rows if row is not pooled] if pooled else []


def _headline(rows: tuple[Result, list[Result]], overall: str, some: str, none: str, few: str) -> tuple[str, str]:
    """The verdict of the row over all branches and of the branches together, and its headline."""
    row, branches = rows
    verdict = verdict_of_rows([row, *branches])
    if verdict == DIFFERENCE:
        return verdict, overall if found(row) else some
    return verdict, none if verdict == NONE_FOUND else few


def _times(row: Result) -> str:
    return ratio(row["value"], ratio_decimals(row))


def _bounds(row: Result) -> list[str]:
    if row["unit"] == "ratio":
        return [ratio(row[end], ratio_decimals(row)) for end in ("low", "high")]
    return [plain(row[end]) for end in ("low", "high")]


def _bracket(row: Result) -> str:
    if not has_interval(row):
        return f"no interval, n = {row['n']:,}"
    return f"95 % interval {' to '.join(_bounds(row))}, p {row_p_value(row)}, n = {row['n']:,}"


def _crude_sentence(row: Result) -> str:
    """The crude ratio, and why it is not the one to read."""
    return f" Over all people at once the ratio is {_times(row)}, which also follows which branches are named often."


def _still(row: Result) -> str:
    """Where nothing was found: what could still be."""
    if row["verdict"] != NONE_FOUND or not has_interval(row):
        return ""
    low, high = _bounds(row)
    return f" It could still be as low as {low} or as high as {high}."


def _branch_sentence(branches: list[Result], subject: str, ways: tuple[str, str], landmark: float) -> str:
    """Which branches differ and in which direction: below the landmark, or above."""
    if not branches:
        return ""
    parts = []
    for way, below in zip(ways, (True, False), strict=True):
        names = [people(row["subset"]) for row in branches if found(row) and (row["value"] < landmark) == below]
        parts += [f"{way} among {listed(names)}"] if names else []
    return f" Branch by branch, {f'{subject} ' + ' and '.join(parts) if parts else 'no difference was found'}."


def _players(part: pl.DataFrame) -> Iterator[Finding]:
    """Actress and actor: the one occupation whose words name a gender."""
    rows = {row["concept"]: row for row in valued(part, "category") if row["group"]}
    if len(rows) == 2 and any(row["value"] for row in rows.values()):
        actress, actor = rows["actress"], rows["actor"]
        sentence = (
            f"Of {actor['n']:,} captions, {actress['value']:,.0f} contain “actress” and {actor['value']:,.0f} “actor”."
        )
        yield finding(actress, "words", "Actresses and actors", sentence, verdict=FACT, more=[actor])


def _known(part: pl.DataFrame) -> Iterator[Finding]:
    row, branches = _pooled(valued(part, "identity_correlation"))
    if row is None:
        return
    verdict, headline = _headline(
        (row, branches),
        f"The model knows people {'better' if row['value'] > 0 else 'worse'} whom captions name more often",
        "In some branches captions and known names go together",
        "No link between captions and known names was found",
        "Too few people to link captions and known names",
    )
    sentence = (
        f"Within {'branch and ' if branches else ''}gender, the rank correlation of captions with {BELIEF} is "
        f"{plain(row['value'])} ({_bracket(row)}).{_still(row)}"
    )
    sentence += _branch_sentence(branches, "the correlation is", ("negative", "positive"), 0.0)
    yield finding(row, "known", headline, sentence, verdict=verdict, effect=abs(row["value"]), more=branches)


def _gap(part: pl.DataFrame) -> Iterator[Finding]:
    rows = valued(part, "identity_gap")
    (before, branches), (after, _) = (
        _pooled([row for row in rows if row["concept"] == concept]) for concept in (UNADJUSTED, ADJUSTED)
    )
    if before is None:
        return
    one, other = ("women", "men") if before["value"] > 1 else ("men", "women")
    verdict, headline = _headline(
        (before, branches),
        f"The right name stands out more for {one} than for {other}",
        "In some branches the right name does not stand out alike for women and men",
        "No difference in how well women and men are known by name was found",
        "Too few people to compare how well women and men are known by name",
    )
    sentence = (
        f"{BELIEF.capitalize()} is {_times(before)} times as large for women as for men"
        f"{' of their branch' if branches else ''} (geometric means; {_bracket(before)})"
    )
    sentence += f", and {_times(after)} times at equal exposure ({_bracket(after)})." if after else "."
    sentence += _still(before) + _branch_sentence(branches, "for women it is", ("smaller", "larger"), 1.0)
    more, effect = [*branches, *([after] if after else [])], log_distance(before["value"], 1.0)
    yield finding(before, "gap", headline, sentence, verdict=verdict, effect=effect, more=more)
