"""Perception's findings: what changes the judgements, for whom, who is the default, who comes first.

A difference that is not shown is not called absent, and a difference between photographs is not called an effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding, turned
from beholder.chapter.numbers import Result, excludes, has_interval, percent, row_p_value
from beholder.chapter.phrases import listed
from beholder.chapter.queries import metric_rows
from beholder.comparison.verdicts import DIFFERENCE, NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.studies.perception import phrases, queries
from beholder.studies.perception.ranking import top_size
from beholder.studies.perception.scores import GROUPED, INTERACTIONS, MEAN

MOST = 3
"""Effects that one sentence names."""
BOUNDS = ("value", "low", "high")
NOT_NONE = "That does not mean that there is none."
TOO_FEW = "No interval can be given (too few people, or scores that are all alike), so nothing is said either way."
AT_ONCE = "intervals that hold for all of them at once"


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


def _no_neutral(part: pl.DataFrame) -> Iterator[Finding]:
    """Scores made elsewhere may lack the neutral prompt: then there is no Δ."""
    rows = metric_rows(part, "cosine").head(1).to_dicts()
    if rows and not metric_rows(part, "delta_cosine").height:
        sentence = "Without it there is no Δ: gaps, effects, curves and markedness are not measured, rankings are."
        headline = "The scores have no neutral prompt"
        yield finding(rows[0], "variant", headline, sentence, verdict=NOT_MEASURED)


def _effects(part: pl.DataFrame) -> Iterator[Finding]:
    """What changing one attribute alone does; matched sets only."""
    effects = sorted(queries.largest(part, "causal_effect"), key=queries.shown, reverse=True)
    best = list({row["subset"]: row for row in reversed(effects)}.values())[::-1]
    if not best:
        return
    clear = [row for row in best if queries.shown(row)]
    quiet = [phrases.attribute(row["subset"]) for row in best if not queries.shown(row)]
    if not clear:
        sentence = f"No effect of {listed(quiet)} is shown after correction. {NOT_NONE}"
        yield _not_shown(best, "effect", "No attribute is shown to have an effect", sentence)
        return
    top = clear[0]
    mover = phrases.attribute(top["subset"])
    headline = f"The largest effect that is shown is of {mover}, on {phrases.dimension(top['concept'])}"
    changes = "; ".join(map(_effect, clear[:MOST]))
    sentence = (
        f"All else the same: {changes} ({phrases.unit(top)}, {AT_ONCE}; {len(effects)} effects, "
        f"{phrases.counted(top['n'], 'identity', 'identities')})."
    )
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
        sentence = f"{_none_of(len(rows), 'difference', 'between slopes')} {NOT_NONE}"
        yield _not_shown(rows, "interaction", "No attribute's effect is shown to differ between groups", sentence)
        return
    row = clear[0]
    varied, _ = INTERACTIONS[row["subset"]]
    first, second = phrases.pair(row)
    headline = f"{phrases.attribute(varied).capitalize()} does not have the same effect on every group"
    slopes = queries.by_place(part, "slope")
    places = [queries.place({**row, "group": row[side], "against": None}) for side in ("group", "against")]
    rises = [slopes[place] for place in places if place in slopes]
    each = ""
    if len(rises) == len(places):
        changed = [f"by {phrases.signed(rise)} for {name}" for rise, name in zip(rises, (first, second), strict=True)]
        each = f"Over its whole range it changes {phrases.dimension(row['concept'])} {' and '.join(changed)}. "
    sentence = (
        f"{each}The change in {phrases.dimension(row['concept'])} for {first} less that for {second} is "
        f"{phrases.signed(row)} ({phrases.bounds(row)}, {phrases.unit(row)}). "
        f"{_how_many(len(clear), len(rows), 'such difference')}"
    )
    yield finding(row, "interaction", headline, sentence, shown=True, more=[*rises, *clear[1:]])


def _how_many(clear: int, number: int, thing: str) -> str:
    """`3 of 24 differences are shown, by intervals that hold for all of them at once.`; nothing of a single one."""
    if number == 1:
        return f"It is the only {thing.removeprefix('such ')} that was tested."
    return f"{phrases.how_many(clear, number, thing)}, by {AT_ONCE}."


def _none_of(number: int, thing: str, where: str) -> str:
    """`None of 12 differences between slopes is shown after correction.`"""
    if number == 1:
        return f"The one {thing} {where} is not shown."
    return f"None of {number} {thing}s {where} is shown after correction."


def _stand_out(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether the curve of one crossed group departs from those of the others."""
    departures = {name: queries.largest(part, f"{name}_departure") for name in ("slope", "curvature")}
    for subset in dict.fromkeys(row["subset"] for rows in departures.values() for row in rows):
        varied, grouping = INTERACTIONS[subset]
        over = f"Over {phrases.attribute(varied)}"
        rows = [row for each in departures.values() for row in each if row["subset"] == subset]
        clear = [row for row in rows if queries.shown(row)]
        if not clear:
            headline = f"{over}, no group's curve is shown to stand out from the others"
            yield _not_shown(
                rows, "stand_out", headline, f"{_none_of(len(rows), 'departure', 'from the others')} {NOT_NONE}"
            )
            continue
        named = [
            next((row for row in clear if row["metric"].endswith(f"{name}_departure")), None) for name in departures
        ]
        first = [row for row in named if row is not None]
        groups = listed(list(dict.fromkeys(phrases.group(row["group"], grouping) for row in first)))
        headline = f"{over}, the curve of {groups} stands out from those of the other groups"
        if len({row["group"] for row in first}) > 1:
            headline = f"{over}, the curves of {groups} stand out from those of the other groups"
        sentence = " ".join(_departing(part, row) for row in first)
        sentence += f" {_how_many(len(clear), len(rows), 'departure')}"
        yield finding(
            first[0], "stand_out", headline, sentence, shown=True, more=[row for row in clear if row is not first[0]]
        )


def _departing(part: pl.DataFrame, row: Result) -> str:
    """A group's slope or curvature, the mean of the others, and the difference."""
    kind = row["metric"].removeprefix("perception.").removesuffix("_departure")
    _, grouping = INTERACTIONS[row["subset"]]
    group, size = (
        phrases.group(row["group"], grouping),
        f"{phrases.signed(row)} ({phrases.bounds(row)}, {phrases.unit(row)})",
    )
    what = "The rise over the whole range" if kind == "slope" else "The height of the two ends above the middle"
    own = queries.by_place(part, kind).get(queries.place(row))
    if own is None or own["value"] is None:
        return f"{what} in {phrases.dimension(row['concept'])} differs by {size} between {group} and the other groups."
    others = phrases.signed({**own, "value": own["value"] - row["value"]})
    return (
        f"{what} in {phrases.dimension(row['concept'])} is {phrases.signed(own)} for {group} and {others} on average "
        f"for the other groups: a difference of {size}."
    )


def _gaps(part: pl.DataFrame) -> Iterator[Finding]:
    """Differences between groups of photographs: not effects, since photographs differ in more than the label."""
    if metric_rows(part, "causal_effect").height:
        return
    for attribute in GROUPED:
        rows = queries.gaps(part, subset=attribute)
        clear = [row for row in rows if queries.shown(row)]
        by = f"By {phrases.attribute(attribute)}"
        if rows and not clear:
            yield _not_shown(
                rows,
                "gap",
                f"{by}, no difference is shown",
                f"{_none_of(len(rows), 'difference', 'between groups')} {NOT_NONE}",
            )
        elif clear:
            yield _gap(by, clear[0], clear, len(rows))


def _upward(row: Result) -> Result:
    """The difference as the higher group less the lower one: its value agrees with a headline that names the higher."""
    return turned(row) if row["value"] < 0 else row


def _gap(by: str, widest: Result, clear: list[Result], number: int) -> Finding:
    row = _upward(widest)
    first, second = phrases.pair(row)
    headline = f"{by}, the widest gap that is shown is in {phrases.dimension(row['concept'])}: {first} above {second}"
    equal = "at equal shares of the other labels, " if row["metric"] == "perception.adjusted_gap" else ""
    sentence = (
        f"Δ (the score less that of the neutral prompt) of {first} less that of {second} is {phrases.signed(row)} "
        f"({phrases.bounds(row)}; {equal}{phrases.unit(row)}, n = {row['n']}). "
        f"{_how_many(len(clear), number, 'difference')} Pictures of two groups differ in more than the label."
    )
    return finding(row, "gap", headline, sentence, shown=True, more=clear[1:])


def _markedness(part: pl.DataFrame) -> Iterator[Finding]:
    for attribute in ("race", "gender"):
        table = metric_rows(part, "markedness").filter(pl.col("subset") == attribute, pl.col("n") > 0)
        if table.height < 2:
            continue
        rows = table.sort("value", descending=True).to_dicts()
        shares = "; ".join(_share(row) for row in rows)
        sentence = f"Plain “person” fits better than the group's own word in {shares}."
        gaps = sorted(
            metric_rows(part, "markedness_gap").filter(subset=attribute).to_dicts(), key=_distance, reverse=True
        )
        clear = [row for row in gaps if _default(row)]
        if clear:
            row = _upward(clear[0])
            headline = f"The model treats {row['group']} as the default more than {row['against']}"
            sentence += f" {_default_gap(row)}"
            yield finding(row, "markedness", headline, sentence, shown=True, more=rows)
        else:
            headline = f"By {attribute}, no group is shown to be the default more than another"
            verdict = "" if any(has_interval(row) for row in gaps) else TOO_LITTLE
            yield finding(rows[0], "markedness", headline, sentence, verdict=verdict, more=[*rows[1:], *gaps])


def _distance(row: Result) -> float:
    return abs(queries.beyond(row))


def _default(row: Result) -> bool:
    """Whether a difference of markedness is shown, and is more than words explain that fit everybody alike."""
    return queries.shown(row) and excludes(row, 0.0) and row["value"] * queries.beyond(row) > 0


def _default_gap(row: Result) -> str:
    places = phrases.decimals_of(row, 0)
    expected = phrases.signed({**row, "value": row["landmark"] or 0.0}, places)
    return (
        f"The share of {row['group']} less that of {row['against']} is {phrases.signed(row, places)} points "
        f"({phrases.bounds(row, places)}); for a model that does not know these groups it would be {expected}."
    )


def _share(row: Result) -> str:
    """Per cent with its interval, where there is one, and that of everybody's images for the same word."""
    places = phrases.decimals_of(row, 0)
    bounds = f" ({phrases.bounds(row, places)})" if has_interval(row) else ""
    everyone = f"; {row['expected']:.{places}f} % of everybody's images" if row["expected"] is not None else ""
    share = f"{phrases.number(row, decimals=places)} %{bounds}"
    return f"{share} of the images of {row['group']} (word “{row['concept']}”{everyone})"


def _ranking(part: pl.DataFrame) -> Iterator[Finding]:
    """Who comes first, mean over the dimensions, at the largest k there is."""
    table = metric_rows(part, "skew").filter(pl.col("concept") == MEAN)
    for attribute in GROUPED:
        at_largest = table.filter(subset=attribute).filter(pl.col("template") == pl.col("template").first())
        rows = sorted(at_largest.to_dicts(), key=queries.beyond)
        if len(rows) < 2:
            continue
        least, most = rows[0], rows[-1]
        above = [most] if queries.shown(most) and queries.beyond(most) > 0 else []
        below = [least] if queries.shown(least) and queries.beyond(least) < 0 else []
        by = phrases.attribute(attribute)
        if above or below:
            headline = _first_and_last(above, below)
            sentence = _held(part, most, least)
            yield finding((above or below)[0], "ranking", headline, sentence, shown=True, more=[*above, *below][1:])
        else:
            headline = f"By {by}, no group is shown to come before another at the top of its rankings"
            yield _not_shown([most, least], "ranking", headline, f"{_held(part, most, least)} {NOT_NONE}")


def _first_and_last(above: list[Result], below: list[Result]) -> str:
    names = [phrases.group(row["group"], row["subset"]) for row in (*above, *below)]
    if above and below:
        return f"{names[0]} comes before {names[1]} at the top of its rankings"
    return (
        f"{names[0]} is {'more' if above else 'less'} frequent at the top of its rankings than among all images ranked"
    )


def _held(part: pl.DataFrame, most: Result, least: Result) -> str:
    """How often the top holds the two groups, measured by the images that are ranked."""
    held = [f"{phrases.group(row['group'], row['subset'])} {_times(row)}" for row in (most, least)]
    k = top_size(most["template"])
    absent = metric_rows(part, "skew", absent=True).filter(pl.col("value").is_null(), template=most["template"])
    missing = absent.filter(pl.col("group").is_in([most["group"], least["group"]]), subset=most["subset"]).height
    left_out = "; dimensions whose top has no image of a group are left out" if missing else ""
    return (
        f"Ranked by each dimension, the first {k} of {most['n']} images hold {' and '.join(held)} as often as all of "
        f"them do (geometric mean over the dimensions{left_out})."
    )


def _times(row: Result) -> str:
    """`1.82 times (1.43–2.32)`, where 1 is the group's share of all images that are ranked."""
    ends = {end: None if row[end] is None else math.exp(row[end] - (row["landmark"] or 0.0)) for end in BOUNDS}
    held = {**row, **ends, "landmark": 1.0}
    bounds = f" ({phrases.bounds(held)})" if has_interval(held) else ""
    return f"{phrases.number(held)} times{bounds}"


def _neutral(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether subtracting the neutral prompt moves the groups differently from shuffled ones, where groups differ."""
    if not any(map(queries.shown, queries.gaps(part))):
        return
    for row in metric_rows(part, "narrowing").filter(pl.col("concept") == "groups").to_dicts():
        if not queries.shown(row):
            headline = "Subtracting the neutral prompt is not shown to move the groups differently from shuffled ones"
            yield _not_shown([row], "neutral", headline, f"{_farther(row)} {NOT_NONE}")
            continue
        moved = "moves the groups apart" if queries.beyond(row) > 0 else "brings the groups closer together"
        headline = f"Compared with shuffled groups, subtracting the neutral prompt {moved}"
        yield finding(row, "neutral", headline, _farther(row), shown=True)


def _farther(row: Result) -> str:
    """How much farther apart the groups are after the neutral prompt is subtracted, and shuffled groups."""
    bounds = f" ({phrases.bounds(row)})" if has_interval(row) else ""
    sentence = (
        f"The groups' mean scores are {phrases.number(row)} times as far apart{bounds} once each image's score of the "
        "neutral prompt is subtracted"
    )
    if row["landmark"] is None:
        return f"{sentence}."
    places = phrases.decimals_of(row)
    return f"{sentence}; those of shuffled groups are {row['landmark']:.{places}f} times (p {_p_value(row)})."


def _p_value(row: Result) -> str:
    """`= 0.031`, `≤ 0.002`."""
    text = row_p_value(row)
    return text if text[0] in "<≤" else f"= {text}"


def _ratings(part: pl.DataFrame) -> Iterator[Finding]:
    rated = metric_rows(part, "rating_r", absent=True)
    rows = rated.drop_nulls("value").sort("value", descending=True).to_dicts()
    if not rows:
        for row in rated.head(1).to_dicts():
            traits = "The one rated trait" if rated.height == 1 else f"None of {rated.height} rated traits"
            sentence = (
                f"{traits} could{' not' if rated.height == 1 else ''} be compared: the table of ratings says why."
            )
            yield finding(row, "ratings", "The ratings are not compared", sentence, verdict=NOT_MEASURED)
        return
    clear = [row for row in rows if queries.shown(row)]
    agree, of = [row for row in clear if row["value"] > 0], phrases.counted(len(rows), "trait")
    headline = f"It is not shown to order {rows[0]['subset']}s as people do on any trait"
    if clear:
        way = "as people do" if agree else "opposite to people's ratings"
        headline = f"It orders {rows[0]['subset']}s {way} on {len(agree or clear)} of {of}, after correction"
    verdict = DIFFERENCE if clear else NONE_FOUND if any(map(has_interval, rows)) else TOO_LITTLE
    departures = [row for row in queries.largest(part, "rating_departure") if queries.shown(row)][:1]
    sentence = f"{'; '.join(map(_trait, rows[:8]))}." + "".join(map(_departure, departures))
    if agree and len(agree) < len(clear):
        sentence += f" The opposite order is shown on {len(clear) - len(agree)} of {of}."
    yield finding(rows[0], "ratings", headline, sentence, verdict=verdict, more=[*rows[1:8], *departures])


def _trait(row: Result) -> str:
    """How far the model agrees with people on a trait."""
    bounds = f"{phrases.bounds(row)}, " if has_interval(row) else ""
    return f"{phrases.dimension(row['concept'])} r = {phrases.number(row)} ({bounds}n = {row['n']})"


def _departure(row: Result) -> str:
    """Where the model is farthest from people, of what is shown."""
    way = "above" if row["value"] > 0 else "below"
    far = phrases.number({**row, "value": abs(row["value"])})
    size = f"{far} standard deviations {way} people's ratings ({phrases.bounds(row)})"
    return f" The widest departure that is shown is on {phrases.dimension(row['concept'])} of {row['group']}: {size}."


FINDERS = (_variant, _no_neutral, _effects, _interactions, _stand_out, _gaps, _markedness, _ranking, _neutral, _ratings)
