"""Perception's findings: what changes the judgements, for whom, who is the default, who comes first.

Where no difference is found, the sentence says how large one could still be. A difference between photographs is not
called an effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding, turned, verdict_of_rows
from beholder.chapter.numbers import Result, decimals_for, has_interval, listed, percent, percent_range
from beholder.chapter.queries import metric_rows
from beholder.comparison.family import FACT, FEWEST, NOT_MEASURED, TOO_LITTLE
from beholder.studies.perception import phrases, queries
from beholder.studies.perception.bias import PER_CENT
from beholder.studies.perception.ranking import top_size
from beholder.studies.perception.scores import GROUPED, INTERACTIONS, MEAN

MOST = 3
"""Effects that one sentence names."""
TOO_FEW = f"Nothing is said either way: a group has fewer than {FEWEST} people, or there are too few to compare."
BOUNDS = ("low", "high")
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
    effects = sorted(queries.decided(part, "causal_effect"), key=queries.found, reverse=True)
    if not effects:
        return
    subsets = dict.fromkeys(row["subset"] for row in effects)
    best = [next(row for row in effects if row["subset"] == subset) for subset in subsets]
    clear = [row for row in best if queries.found(row)]
    quiet = [phrases.attribute(row["subset"]) for row in best if not queries.found(row)]
    if not clear:
        sentence = f"No effect of {listed(quiet)} is found.{_could_be(effects)}"
        yield _none_found(effects, "effect", "No attribute is found to have an effect", sentence)
        return
    top = clear[0]
    mover = phrases.attribute(top["subset"])
    headline = f"The largest effect that is found is of {mover}, on {phrases.dimension(top['concept'])}"
    changes = "; ".join(map(_effect, clear[:MOST]))
    sentence = (
        f"All else the same: {changes} ({phrases.unit(top)}, {AT_ONCE}; {len(effects)} effects, "
        f"{phrases.counted(top['n'], 'identity', 'identities')})."
    )
    sentence += f" No effect of {listed(quiet)} is found." if quiet else ""
    yield _found(top, "effect", headline, sentence, [row for row in best if row is not top])


def _found(row: Result, kind: str, headline: str, sentence: str, more: list[Result]) -> Finding:
    return finding(row, kind, headline, sentence, verdict=verdict_of_rows([row]), more=more)


def _none_found(rows: list[Result], kind: str, headline: str, sentence: str) -> Finding:
    """No difference is found, or there is too little data to say so."""
    verdict = verdict_of_rows(rows)
    told = TOO_FEW if verdict == TOO_LITTLE else sentence
    return finding(rows[0], kind, headline, told, verdict=verdict, more=rows[1:])


def _could_be(rows: list[Result]) -> str:
    """How far from none a difference could still be, by the bounds that decided."""
    known = [row for row in rows if has_interval(row)]
    if not known:
        return ""
    size = max(abs(queries.beyond({**row, "value": row[end]})) for row in known for end in BOUNDS)
    points = known[0]["unit"] == PER_CENT
    number = phrases.number({**known[0], "value": size}, decimals=0 if points else None)
    return f" One of up to {number} {'points' if points else f'({phrases.unit(known[0])})'} could still be there."


def _effect(row: Result) -> str:
    first, second = phrases.pair(row)
    level = "" if row["subset"] in ("race", "gender") else f"{phrases.attribute(row['subset'])} "
    changed = f"changes {phrases.dimension(row['concept'])} by {phrases.signed(row)}"
    return f"{level}{first} instead of {second} {changed} ({phrases.bounds(row)})"


def _interactions(part: pl.DataFrame) -> Iterator[Finding]:
    rows = queries.decided(part, "interaction")
    if not rows:
        return
    clear = [row for row in rows if queries.found(row)]
    if not clear:
        sentence = _none_of(rows, "difference", "between slopes")
        yield _none_found(rows, "interaction", "No attribute's effect is found to differ between groups", sentence)
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
    yield _found(row, "interaction", headline, sentence, [*rises, *clear[1:]])


def _how_many(clear: int, number: int, thing: str) -> str:
    """`3 of 24 differences are found, by intervals that hold for all of them at once.`; nothing of a single one."""
    if number == 1:
        return f"It is the only {thing.removeprefix('such ')} that was tested."
    return f"{phrases.how_many(clear, number, thing)}, by {AT_ONCE}."


def _none_of(rows: list[Result], thing: str, where: str) -> str:
    """`None of 12 differences between slopes is found. One of up to 0.80 (cosine × 100) could still be there.`"""
    none = f"No {thing} {where} is found." if len(rows) == 1 else f"None of {len(rows)} {thing}s {where} is found."
    return none + _could_be(rows)


def _stand_out(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether the curve of one crossed group departs from those of the others."""
    departures = {name: queries.decided(part, f"{name}_departure") for name in ("slope", "curvature")}
    for subset in dict.fromkeys(row["subset"] for rows in departures.values() for row in rows):
        varied, grouping = INTERACTIONS[subset]
        over = f"Over {phrases.attribute(varied)}"
        rows = [row for each in departures.values() for row in each if row["subset"] == subset]
        clear = [row for row in rows if queries.found(row)]
        if not clear:
            headline = f"{over}, no group's curve is found to stand out from the others"
            yield _none_found(rows, "stand_out", headline, _none_of(rows, "departure", "from the others"))
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
        yield _found(first[0], "stand_out", headline, sentence, [row for row in clear if row is not first[0]])


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
        rows = queries.decided(part, "gap", subset=attribute)
        clear = [row for row in rows if queries.found(row)]
        by = f"By {phrases.attribute(attribute)}"
        if clear:
            yield _gap(by, clear[0], clear, len(rows))
        elif rows:
            yield _none_found(
                rows, "gap", f"{by}, no difference is found", _none_of(rows, "difference", "between groups")
            )


def _upward(row: Result) -> Result:
    """The difference as the higher group less the lower one: its value agrees with a headline that names the higher."""
    return turned(row) if row["value"] < 0 else row


def _gap(by: str, widest: Result, clear: list[Result], number: int) -> Finding:
    row = _upward(widest)
    first, second = phrases.pair(row)
    headline = f"{by}, the widest gap that is found is in {phrases.dimension(row['concept'])}: {first} above {second}"
    within = f"{row['variant']}, " if row["variant"] else ""
    sentence = (
        f"Δ (the score less that of the neutral prompt) of {first} less that of {second} is {phrases.signed(row)} "
        f"({phrases.bounds(row)}; {within}{phrases.unit(row)}, n = {row['n']}). "
        f"{_how_many(len(clear), number, 'difference')} Pictures of two groups differ in more than the label."
    )
    return _found(row, "gap", headline, sentence, clear[1:])


def _markedness(part: pl.DataFrame) -> Iterator[Finding]:
    for attribute in ("race", "gender"):
        table = metric_rows(part, "markedness").filter(pl.col("subset") == attribute, pl.col("n") > 0)
        if table.height < 2:
            continue
        rows = table.sort("value", descending=True).to_dicts()
        sentence = f"Plain “person” fits better than the group's own word in {'; '.join(map(_share, rows))}."
        gaps = queries.decided(part, "markedness_gap", subset=attribute)
        clear = [row for row in gaps if queries.found(row)]
        if clear:
            row = turned(clear[0]) if queries.beyond(clear[0]) < 0 else clear[0]
            headline = f"The model treats {row['group']} as the default more than {row['against']}"
            if row["value"] < 0:
                headline = f"The model treats {row['group']} as the default more than their word explains"
            yield _found(row, "markedness", headline, f"{sentence} {_default_gap(row)}", rows)
        else:
            headline = f"By {attribute}, no group is found to be the default more than another"
            known = f"{sentence} No difference is found.{_could_be(gaps)}" if any(map(has_interval, gaps)) else sentence
            verdict = verdict_of_rows(gaps)
            yield finding(rows[0], "markedness", headline, known, verdict=verdict, more=[*rows[1:], *gaps])


def _default_gap(row: Result) -> str:
    places = phrases.decimals_of(row, 0)
    expected = phrases.signed({**row, "value": row["landmark"] or 0.0}, places)
    within = f"; {row['variant']}" if row["variant"] else ""
    return (
        f"The share of {row['group']} less that of {row['against']} is {phrases.signed(row, places)} points "
        f"({phrases.bounds(row, places)}{within}); for a model that does not know these groups it would be {expected}."
    )


def _share(row: Result) -> str:
    """Per cent, and that of everybody's images for the same word."""
    everyone = f"; {row['expected']:.0f} % of everybody's images" if row["expected"] is not None else ""
    return f"{phrases.number(row, decimals=0)} % of the images of {row['group']} (word “{row['concept']}”{everyone})"


def _ranking(part: pl.DataFrame) -> Iterator[Finding]:
    """Who comes first, mean over the dimensions, at the largest k there is."""
    for attribute in GROUPED:
        every = queries.decided(part, "skew", subset=attribute, concept=MEAN)
        rows = _at_largest(every)
        if len(rows) < 2:
            continue
        least, most = rows[0], rows[-1]
        above = [most] if queries.found(most) and queries.beyond(most) > 0 else []
        below = [least] if queries.found(least) and queries.beyond(least) < 0 else []
        tops = _tops(part, most, least)
        if above or below:
            first, *rest = [*above, *below]
            yield _found(first, "ranking", _first_and_last(above, below), tops, rest)
        else:
            by = phrases.attribute(attribute)
            headline = f"By {by}, no group is found to come before another at the top of its rankings"
            yield _none_found([most, least], "ranking", headline, tops)


def _at_largest(rows: list[Result]) -> list[Result]:
    """The rows of the largest k, the least frequent group first."""
    largest = max((top_size(row["template"]) for row in rows), default=0)
    return sorted((row for row in rows if top_size(row["template"]) == largest), key=queries.beyond)


def _first_and_last(above: list[Result], below: list[Result]) -> str:
    names = [phrases.group(row["group"], row["subset"]) for row in (*above, *below)]
    if above and below:
        return f"{names[0]} comes before {names[1]} at the top of its rankings"
    return (
        f"{names[0]} is {'more' if above else 'less'} frequent at the top of its rankings than among all images ranked"
    )


def _tops(part: pl.DataFrame, most: Result, least: Result) -> str:
    """The two groups' shares of the top, and of all images ranked."""
    skews = metric_rows(part, "skew", absent=True).filter(subset=most["subset"], template=most["template"])
    even = 1 / max(skews["group"].n_unique(), 1)
    told, pool = [], []
    for row in (most, least):
        each = skews.filter(pl.col("concept") != MEAN, group=row["group"])["value"].to_list() or [row["value"]]
        share = even * sum(0.0 if skew is None else math.exp(skew) for skew in each) / len(each)
        ends = {end: None if row[end] is None else even * math.exp(row[end]) for end in BOUNDS}
        places = decimals_for({"value": share, **ends})
        bounds = f" ({percent_range(ends['low'], ends['high'], places)})" if has_interval(row) else ""
        told.append(f"{percent(share, places)} {phrases.group(row['group'], row['subset'])}{bounds}")
        pool.append(percent(even * math.exp(row["landmark"] or 0.0), 0))
    return (
        f"Ranked by each dimension, the first {top_size(most['template'])} of {most['n']} images are "
        f"{' and '.join(told)}, mean over the dimensions; all images ranked are {' and '.join(pool)}."
    )


def _neutral(part: pl.DataFrame) -> Iterator[Finding]:
    """What subtracting the neutral prompt does to the groups, where groups differ: a description."""
    if not any(map(queries.found, queries.decided(part, "gap"))):
        return
    for row in metric_rows(part, "narrowing").filter(pl.col("landmark").is_not_null(), concept="groups").to_dicts():
        moved = "moves the groups apart" if row["value"] > 1 else "brings the groups closer together"
        sentence = (
            f"The groups' mean scores are {phrases.number(row)} times as far apart once each image's score of the "
            f"neutral prompt is subtracted; those of shuffled groups are {row['landmark']:.2f} times."
        )
        yield finding(row, "neutral", f"Subtracting the neutral prompt {moved}", sentence, verdict=FACT)


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
    clear = [row for row in rows if queries.found(row)]
    agree, of = [row for row in clear if row["value"] > 0], phrases.counted(len(rows), "trait")
    headline = f"It is not found to order {rows[0]['subset']}s as people do on any trait"
    if clear:
        way = "as people do" if agree else "opposite to people's ratings"
        headline = f"It orders {rows[0]['subset']}s {way} on {len(agree or clear)} of {of}"
    departures = [row for row in queries.decided(part, "rating_departure") if queries.found(row)][:1]
    sentence = f"{'; '.join(map(_trait, rows[:8]))}." + "".join(map(_departure, departures))
    if agree and len(agree) < len(clear):
        sentence += f" The opposite order is found on {len(clear) - len(agree)} of {of}."
    yield finding(rows[0], "ratings", headline, sentence, verdict=verdict_of_rows(rows), more=[*rows[1:8], *departures])


def _trait(row: Result) -> str:
    """How far the model agrees with people on a trait."""
    bounds = f"{phrases.bounds(row)}, " if has_interval(row) else ""
    return f"{phrases.dimension(row['concept'])} r = {phrases.number(row)} ({bounds}n = {row['n']})"


def _departure(row: Result) -> str:
    """Where the model is farthest from people, of what is found."""
    way = "above" if row["value"] > 0 else "below"
    far = phrases.number({**row, "value": abs(row["value"])})
    size = f"{far} standard deviations {way} people's ratings ({phrases.bounds(row)})"
    return f" The widest departure that is found is on {phrases.dimension(row['concept'])} of {row['group']}: {size}."


FINDERS = (_variant, _no_neutral, _effects, _interactions, _stand_out, _gaps, _markedness, _ranking, _neutral, _ratings)
