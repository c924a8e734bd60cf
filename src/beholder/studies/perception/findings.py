"""Perception's findings: what changes the judgements, for whom, who is the default, who comes first.

A difference that is not shown is not called absent, and a difference between photographs is not called an effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import NOT_MEASURED, TOO_LITTLE, Finding, finding
from beholder.chapter.numbers import Result, excludes, has_interval, percent
from beholder.chapter.phrases import listed
from beholder.chapter.queries import metric_rows, widest_first
from beholder.studies.perception import phrases, queries
from beholder.studies.perception.ranking import top_size
from beholder.studies.perception.scores import GROUPED, INTERACTIONS, MEAN

MOST = 3
"""Effects that one sentence names."""
NOT_NONE = "That does not mean that there is none."
TOO_FEW = "There are too few people for an interval, so nothing can be said either way."


def perception_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show, in the order to read it."""
    return [each for find in FINDERS for each in find(part)]


def _variant(part: pl.DataFrame) -> Iterator[Finding]:
    unit = queries.unit(part)
    if unit == "cosine":
        return
    what = {
        "P(Yes)": "It was asked whether each caption fits the image: the numbers are its P(Yes).",
        "match logit": "It matches pictures with texts: the numbers are its match logits.",
    }
    sentence = what.get(unit, f"The numbers are in {unit}.")
    sentence += " No published number of the study can be compared with them."
    mass = metric_rows(part, "answer_mass").to_dicts()
    sentence += f" {percent(mass[0]['value'])} of its probability falls on yes or no." if mass else ""
    row = metric_rows(part, "delta_cosine").row(0, named=True)
    headline = "The numbers are a variant, not the study's cosine"
    yield finding(row, "variant", headline, sentence, verdict=NOT_MEASURED, more=mass)


def _effects(part: pl.DataFrame) -> Iterator[Finding]:
    """What changing one attribute alone does; matched sets only."""
    effects = widest_first(metric_rows(part, "causal_effect"))
    best = effects.unique("subset", keep="first", maintain_order=True).to_dicts()
    if not best:
        return
    clear = [row for row in best if queries.shown(row)]
    quiet = [phrases.attribute(row["subset"]) for row in best if not queries.shown(row)]
    if not clear:
        sentence = f"No effect of {listed(quiet)} is shown after correction. {NOT_NONE}"
        yield _not_shown(best, "effect", "No attribute is shown to have an effect", sentence)
        return
    top = clear[0]
    mover = phrases.attribute(top["subset"]).capitalize()
    headline = f"{mover} has the largest effect on its judgement, on {phrases.dimension(top['concept'])}"
    changes = "; ".join(map(_effect, clear[:MOST]))
    sentence = f"All else the same: {changes} ({phrases.unit(top)}, 95 % intervals over {top['n']} identities)."
    sentence += f" No effect of {listed(quiet)} is shown." if quiet else ""
    yield finding(top, "effect", headline, sentence, shown=True, more=[row for row in best if row is not top])


def _not_shown(rows: list[Result], kind: str, headline: str, sentence: str) -> Finding:
    """No difference is shown; too little data where no row has an interval."""
    if any(has_interval(row) for row in rows):
        return finding(rows[0], kind, headline, sentence, more=rows[1:])
    return finding(rows[0], kind, headline, TOO_FEW, verdict=TOO_LITTLE, more=rows[1:])


def _effect(row: Result) -> str:
    first, second = phrases.pair(row)
    level = "" if row["subset"] in ("race", "gender") else f"{phrases.attribute(row['subset'])} "
    changed = f"changes {phrases.dimension(row['concept'])} by {phrases.signed(row)}"
    return f"{level}{first} instead of {second} {changed} ({phrases.bounds(row)})"


def _interactions(part: pl.DataFrame) -> Iterator[Finding]:
    rows = queries.largest(part, "interaction")
    if not rows:
        return
    clear = [row for row in rows if queries.shown(row)]
    if not clear:
        sentence = f"None of {len(rows)} differences between slopes is shown after correction. {NOT_NONE}"
        yield _not_shown(rows, "interaction", "No attribute's effect is shown to differ between groups", sentence)
        return
    row = clear[0]
    varied, _ = INTERACTIONS[row["subset"]]
    first, second = phrases.pair(row)
    headline = f"{phrases.attribute(varied).capitalize()} does not have the same effect on every group"
    size = phrases.number({**row, "value": abs(row["value"])})
    sentence = (
        f"Over its whole range it changes {phrases.dimension(row['concept'])} by {size} "
        f"{'more' if row['value'] > 0 else 'less'} for {first} than for {second} "
        f"({phrases.bounds(row)}, {phrases.unit(row)}). "
        f"{len(clear)} of {len(rows)} such differences are shown after correction."
    )
    yield finding(row, "interaction", headline, sentence, shown=True, more=clear[1:])


def _gaps(part: pl.DataFrame) -> Iterator[Finding]:
    """Differences between groups of photographs: not effects, since photographs differ in more than the label."""
    if metric_rows(part, "causal_effect").height:
        return
    for attribute in GROUPED:
        rows = queries.largest(part, "gap", subset=attribute)
        clear = [row for row in rows if queries.shown(row)]
        by = f"By {phrases.attribute(attribute)}"
        if rows and not clear:
            sentence = f"None of {len(rows)} differences between groups is shown after correction. {NOT_NONE}"
            yield _not_shown(rows, "gap", f"{by}, no difference is shown", sentence)
        elif clear:
            row = clear[0]
            first, second = phrases.pair(row)
            higher, lower = (first, second) if row["value"] > 0 else (second, first)
            size = phrases.number({**row, "value": abs(row["value"])})
            headline = f"{by}, the widest gap is in {phrases.dimension(row['concept'])}: {higher} above {lower}"
            sentence = (
                f"Δ differs by {size} ({phrases.bounds(row)} for {first} less {second}; {phrases.unit(row)}, "
                f"n = {row['n']}). {len(clear)} of {len(rows)} differences are shown after correction. "
                "Photographs differ in more than the label."
            )
            yield finding(row, "gap", headline, sentence, shown=True, more=clear[1:])


def _markedness(part: pl.DataFrame) -> Iterator[Finding]:
    for attribute in ("race", "gender"):
        table = metric_rows(part, "markedness").filter(pl.col("subset") == attribute, pl.col("n") > 0)
        if table.height < 2:
            continue
        rows = table.sort("value", descending=True).to_dicts()
        most, least = rows[0], rows[-1]
        shares = "; ".join(f"{_share(row)} of the images of {row['group']}" for row in rows)
        sentence = f"Plain “person” fits better than the group's own word in {shares}."
        if most["low"] is not None and least["high"] is not None and most["low"] > least["high"]:
            headline = f"The model treats {most['group']} as the default more than {least['group']}"
            yield finding(most, "markedness", headline, sentence, shown=True, more=rows[1:])
        else:
            headline = f"By {attribute}, no group is shown to be the default more than another"
            verdict = "" if any(has_interval(row) for row in rows) else TOO_LITTLE
            yield finding(most, "markedness", headline, sentence, verdict=verdict, more=rows[1:])


def _share(row: Result) -> str:
    """Per cent with its interval, where there is one."""
    bounds = f" ({row['low']:.0f}–{row['high']:.0f})" if row["low"] is not None else ""
    return f"{row['value']:.0f} %{bounds}"


def _ranking(part: pl.DataFrame) -> Iterator[Finding]:
    """Who comes first, mean over the dimensions, at the largest k there is."""
    table = metric_rows(part, "skew").filter(pl.col("concept") == MEAN)
    for attribute in ("race", "gender"):
        rows = table.filter(pl.col("subset") == attribute)
        rows = rows.filter(pl.col("template") == pl.col("template").first()).sort("value")
        if rows.height < 2:
            continue
        least, *_, most = rows.to_dicts()
        if queries.shown(most) or queries.shown(least):
            headline = f"{most['group']} comes before {least['group']} at the top of its rankings"
            sentence = (
                f"Ranked by each dimension, the first {top_size(most['template'])} of {most['n']} images hold "
                f"{most['group']} {math.exp(most['value']):.2f} times and {least['group']} "
                f"{math.exp(least['value']):.2f} times as often as an even share (geometric mean over the dimensions)."
            )
            yield finding(most, "ranking", headline, sentence, shown=True, more=[least])


def _neutral(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether subtracting the neutral prompt brings groups closer together, where they differ at all."""
    if not any(queries.shown(row) for row in metric_rows(part, "gap").to_dicts()):
        return
    for row in metric_rows(part, "narrowing").filter(pl.col("concept") == "groups").to_dicts():
        if excludes(row, 1.0):
            moved = "moves the groups apart" if row["value"] > 1 else "brings the groups closer together"
            sentence = (
                f"The groups' mean scores are {phrases.number(row)} times as far apart ({phrases.bounds(row)}) once "
                "each image's score of the neutral prompt is subtracted."
            )
            yield finding(row, "neutral", f"Subtracting the neutral prompt {moved}", sentence, shown=True)


def _ratings(part: pl.DataFrame) -> Iterator[Finding]:
    rated = metric_rows(part, "rating_r", absent=True)
    rows = rated.drop_nulls("value").sort("value", descending=True).to_dicts()
    if not rows:
        for row in rated.head(1).to_dicts():
            sentence = f"None of {rated.height} rated traits could be compared: the table of ratings says why."
            yield finding(row, "ratings", "The ratings are not compared", sentence, verdict=NOT_MEASURED)
        return
    agree = [row for row in rows if queries.shown(row) and row["value"] > 0]
    headline = f"It orders {rows[0]['subset']}s as people do on {len(agree)} of {len(rows)} traits, after correction"
    departures = queries.largest(part, "rating_departure", 1)
    sentence = f"{'; '.join(map(_trait, rows[:8]))}." + "".join(map(_departure, departures))
    yield finding(rows[0], "ratings", headline, sentence, shown=bool(agree), more=[*rows[1:8], *departures])


def _trait(row: Result) -> str:
    """How far the model agrees with people on a trait."""
    bounds = f"{phrases.bounds(row)}, " if has_interval(row) else ""
    return f"{phrases.dimension(row['concept'])} r = {phrases.number(row)} ({bounds}n = {row['n']})"


def _departure(row: Result) -> str:
    """Where the model is farthest from people."""
    way = "above" if row["value"] > 0 else "below"
    size = f"{abs(row['value']):.2f} standard deviations {way} people's ratings"
    return f" It departs most from people on {phrases.dimension(row['concept'])} of {row['group']}: {size}."


FINDERS = (_variant, _effects, _interactions, _gaps, _markedness, _ranking, _neutral, _ratings)
