"""Words, numbers and rows of Perception for a reader, and its findings: what changes the judgements, and for whom.

Where no difference is found, the sentence says how large one could still be. A difference between photographs is not
called an effect.
"""

import math
from collections.abc import Iterator

import polars as pl

from beholder.chapter import numbers
from beholder.chapter.finding import Contrast, Finding, deciding_rows, finding, metric_rows, swapped, verdict_of_rows
from beholder.chapter.numbers import Result, decimals_for, has_interval, listed, percent, percent_range
from beholder.chapter.numbers import number as counted
from beholder.comparison.family import DIFFERENCE, FACT, FEWEST, NOT_MEASURED, TOO_LITTLE
from beholder.comparison.groups import CROSSING
from beholder.core.types import Entry
from beholder.studies.mirror import mirror_findings
from beholder.studies.perception.bias import top_size
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import CROSSED, EVERYONE, GROUPED, INTERACTIONS, MEAN

TITLES = {d.name: d.title for d in DIMENSIONS}
WORDS = {d.name: d.words for d in DIMENSIONS}
ATTRIBUTES = {"skin_tone": "skin tone", "seed": "identity"}
MOST_DECIMALS = 6
PRINTED = {"cosine": "cosine × 100", "P(Yes)": "points of P(Yes)"}  # units that are printed × 100, as in the study


def dimension(name: str | None) -> str:
    """A dimension's title; a user's own as it is named."""
    return TITLES.get(name or "", name or "")


def judged(name: str | None) -> str:
    """A dimension by its first words, and its title where they do not say it."""
    words = " and ".join(f"“{word}”" for word in WORDS.get(name or "", ())[:2])
    return f"{words} ({dimension(name)})" if words else f"“{dimension(name)}”"


def attribute(name: str | None) -> str:
    """An attribute, a grouping or an interaction, in words."""
    name = name or ""
    parts = CROSSED.get(name) or INTERACTIONS.get(name) or (name,)
    return CROSSING.join(ATTRIBUTES.get(part, part) if part == name else attribute(part) for part in parts)


def unit(row: Result) -> str:
    """The unit as printed."""
    return PRINTED.get(row["unit"], str(row["unit"]))


def factor(row: Result) -> float:
    """The factor by which a row's numbers are multiplied for printing."""
    return 100.0 if row["unit"] in PRINTED else 1.0


def printed(row: Result, centre: float = 0.0) -> Result:
    """Value and bounds as a chart draws them, less a `centre`."""
    known = {key: row[key] for key in ("value", "low", "high")}
    return {key: None if x is None else round(factor(row) * (x - centre), 4) for key, x in known.items()}


def decimals_of(row: Result, least: int = 2) -> int:
    """Decimals such that an interval has a width to see, and its bounds differ from the value of no effect."""
    if not has_interval(row):
        return least
    scale, landmark = factor(row), row.get("landmark") or 0.0
    width, off = scale * (row["high"] - row["low"]), min(scale * abs(row[end] - landmark) for end in ("low", "high"))
    enough = (p for p in range(least, MOST_DECIMALS) if width >= 2 * 10**-p and off >= 0.5 * 10**-p)
    return next(enough, least)


def number(row: Result, decimals: int | None = None) -> str:
    """A value as printed, with a true minus sign; a dash where there is none."""
    return numbers.points(row["value"], decimals_of(row) if decimals is None else decimals, factor(row))


def signed(row: Result, decimals: int | None = None) -> str:
    """The same with its sign."""
    return numbers.signed(row["value"], decimals_of(row) if decimals is None else decimals, factor(row))


def bounds(row: Result, decimals: int | None = None) -> str:
    """The interval as printed; nothing where there is none."""
    places = decimals_of(row) if decimals is None else decimals
    return numbers.between(row, places, factor(row)) if has_interval(row) else ""


def how_many(clear: int, count: int, thing: str, where: str = "") -> str:
    """`1 of 24 differences is found`."""
    things = f"{counted(count, thing)} {where}".strip()
    return f"{clear} of {things} {'is' if clear == 1 else 'are'} found"


def group(name: str, grouping: str | None) -> str:
    """A group as the data names it; a skin tone with its scale. `grouping` is the attribute, or several crossed."""
    first = CROSSED.get(grouping or "", (grouping,))[0]
    return f"MST {name}" if first == "skin_tone" and name.split(" ")[0].isdecimal() else name


def pair(row: Result, grouping: str | None = None) -> tuple[str, str]:
    """The two groups that a row compares; without a `grouping` the row's subset is one."""
    _, grouped = INTERACTIONS.get(row["subset"], ("", row["subset"]))
    return group(row["group"], grouping or grouped), group(row["against"], grouping or grouped)


def against(row: Result) -> str:
    """`first against second`, or the one group there is."""
    return group(row["group"], row["subset"]) if row["against"] is None else " against ".join(pair(row))


def change(row: Result) -> str:
    """What was changed: groups by their names, levels with their attribute (`smiling: 4 against 0`)."""
    return against(row) if row["subset"] in GROUPED else f"{attribute(row['subset'])}: {against(row)}"


# Rows selected for a reader


def finest(part: pl.DataFrame) -> str:
    """The finest grouping there is: `race × gender`, an attribute alone, or everyone."""
    return str([EVERYONE, *metric_rows(part, "delta_cosine")["subset"].unique(maintain_order=True)][-1])


def grouping_of(part: pl.DataFrame) -> dict[str, str]:
    return dict(metric_rows(part, "delta_cosine").select("group", "subset").iter_rows())


def score_unit(part: pl.DataFrame) -> str:
    """What the scores are."""
    return str([*metric_rows(part, "delta_cosine")["unit"].head(1), "cosine"][0])


def printed_unit(part: pl.DataFrame) -> str:
    """The same as printed."""
    return unit({"unit": score_unit(part)})


def found(row: Result | None) -> bool:
    return row is not None and row["verdict"] == DIFFERENCE


def beyond(row: Result) -> float:
    """How far a value is from its landmark, the value of no effect."""
    return float(row["value"] - (row["landmark"] or 0.0))


def decided(part: pl.DataFrame, metric: str, **where: str) -> tuple[list[Result], list[Result]]:
    """The rows of a metric that decide, those farthest from their landmarks first; and those of them that are found."""
    rows = sorted(deciding_rows(part, metric).filter(**where).to_dicts(), key=lambda row: -abs(beyond(row)))
    return rows, [row for row in rows if found(row)]


def by_place(part: pl.DataFrame, metric: str) -> dict[tuple[str | None, ...], Result]:
    """The rows of a metric by model, subset, groups and concept."""
    return {place(row): row for row in metric_rows(part, metric).to_dicts()}


def place(row: Result) -> tuple[str | None, ...]:
    """What a row is about, whatever its metric."""
    return tuple(row[name] for name in ("model", "subset", "group", "against", "concept"))


MOST = 3  # effects that one sentence names
TOO_FEW = f"Nothing is said either way: a group has fewer than {FEWEST} people, or there are too few to compare."
BOUNDS = ("low", "high")
AT_ONCE = "intervals that hold for all of them at once"
VARIANTS = {
    "P(Yes)": "It was asked whether each caption fits the image: the numbers are its P(Yes).",
    "match logit": "It matches pictures with texts: the numbers are its match logits.",
}


def perception_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show, in the order to read it."""
    return [each for find in FINDERS for each in find(part)]


def _variant(part: pl.DataFrame) -> Iterator[Finding]:
    kind = score_unit(part)
    if kind == "cosine":
        return
    mass = metric_rows(part, "answer_mass").to_dicts()
    sentence = VARIANTS.get(kind, f"The numbers are in {kind}.")
    sentence += " No published number of the study can be compared with them."
    sentence += f" {percent(mass[0]['value'])} of its probability falls on yes or no." if mass else ""
    row = metric_rows(part, "delta_cosine").row(0, named=True)
    headline = "The numbers are a variant, not the study's cosine"
    yield finding(row, "variant", headline, sentence, verdict=NOT_MEASURED, more=mass)


def _no_neutral(part: pl.DataFrame) -> Iterator[Finding]:
    """Scores made elsewhere may lack the neutral prompt: then there is no Δ."""
    rows = metric_rows(part, "cosine").head(1).to_dicts()
    if rows and not metric_rows(part, "delta_cosine").height:
        sentence = "Without it there is no Δ: gaps, effects, curves and markedness are not measured, rankings are."
        yield finding(rows[0], "variant", "The scores have no neutral prompt", sentence, verdict=NOT_MEASURED)


def _effects(part: pl.DataFrame) -> Iterator[Finding]:
    """What changing one attribute alone does; matched sets only."""
    effects, clear = decided(part, "causal_effect")
    if not effects:
        return
    best = _firsts([*clear, *(row for row in effects if not found(row))], "subset")
    clear = [row for row in best if found(row)]
    quiet = [attribute(row["subset"]) for row in best if not found(row)]
    if not clear:
        headline = "No attribute is found to have an effect"
        yield _none_found(effects, "effect", headline, "effect", "of one attribute alone")
        return
    top, nothing = clear[0], f"No effect of {listed(quiet)} is found." if quiet else ""
    headline = f"The largest effect that is found is of {attribute(top['subset'])}, on {dimension(top['concept'])}"
    sentence = f"All else the same: {'; '.join(map(_effect, clear[:MOST]))} ({unit(top)}, {AT_ONCE};"
    sentence += f" {len(effects)} effects, {counted(top['n'], 'identity', 'identities')}). {nothing}"
    shown = [Contrast(f"{attribute(row['subset'])} on {dimension(row['concept'])}", row) for row in best]
    told: Entry = {"answer": f"All else the same, {_effect(top)} ({unit(top)}).", "contrasts": shown}
    more = [row for row in best if row is not top]
    yield finding(top, "effect", headline, sentence.strip(), shown=True, more=more, **told)


def _firsts(rows: list[Result], key: str) -> list[Result]:
    kinds = dict.fromkeys(row[key] for row in rows)
    return [next(row for row in rows if row[key] == kind) for kind in kinds]


def _effect(row: Result) -> str:
    first, second = pair(row)
    level = "" if row["subset"] in ("race", "gender") else f"{attribute(row['subset'])} "
    return f"{level}{first} instead of {second} changes {dimension(row['concept'])} by {signed(row)} ({bounds(row)})"


def _none_found(rows: list[Result], kind: str, headline: str, thing: str, where: str) -> Finding:
    verdict, none = verdict_of_rows(rows), f"Of {counted(len(rows), thing)} {where}, none is found.{_could_be(rows)}"
    sentence = TOO_FEW if verdict == TOO_LITTLE else none
    return finding(rows[0], kind, headline, sentence, verdict=verdict, more=rows[1:])


def _could_be(rows: list[Result]) -> str:
    """How far from none a difference could still be, by the bounds that decided."""
    known = [row for row in rows if has_interval(row)]
    if not known:
        return ""
    size = max(abs(beyond({**row, "value": row[end]})) for row in known for end in BOUNDS)
    points = known[0]["unit"] == "per cent"
    largest = number({**known[0], "value": size}, decimals=0 if points else None)
    return f" One of up to {largest} {'points' if points else f'({unit(known[0])})'} could still be there."


def _interactions(part: pl.DataFrame) -> Iterator[Finding]:
    rows, clear = decided(part, "interaction")
    if not clear:
        headline = "No attribute's effect is found to differ between groups"
        yield from [_none_found(rows, "interaction", headline, "difference", "between slopes")] if rows else []
        return
    row, (first, second) = clear[0], pair(clear[0])
    varied, judgement = attribute(INTERACTIONS[row["subset"]][0]), dimension(row["concept"])
    slopes, each = by_place(part, "slope"), ""
    places = [place({**row, "group": row[side], "against": None}) for side in ("group", "against")]
    rises = [slopes[where] for where in places if where in slopes]
    if len(rises) == len(places):
        changed = f"by {signed(rises[0])} for {first} and by {signed(rises[1])} for {second}"
        each = f"Over its whole range it changes {judgement} {changed}. "
    sentence = f"{each}The change in {judgement} for {first} less that for {second} is {signed(row)} ({bounds(row)},"
    sentence += f" {unit(row)}). {how_many(len(clear), len(rows), 'such difference')}, by {AT_ONCE}."
    headline = f"{varied.capitalize()} does not have the same effect on every group"
    yield finding(row, "interaction", headline, sentence, shown=True, more=[*rises, *clear[1:]])


def _stand_out(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether the curve of one crossed group departs from those of the others."""
    departures = [row for name in ("slope", "curvature") for row in decided(part, f"{name}_departure")[0]]
    for subset in dict.fromkeys(row["subset"] for row in departures):
        varied, grouping = INTERACTIONS[subset]
        over = f"Over {attribute(varied)}"
        rows = [row for row in departures if row["subset"] == subset]
        clear = [row for row in rows if found(row)]
        if not clear:
            headline = f"{over}, no group's curve is found to stand out from the others"
            yield _none_found(rows, "stand_out", headline, "departure", "from the others")
            continue
        first = _firsts(clear, "metric")
        groups = list(dict.fromkeys(group(row["group"], grouping) for row in first))
        curve, stands = ("curves", "stand") if len(groups) > 1 else ("curve", "stands")
        headline = f"{over}, the {curve} of {listed(groups)} {stands} out from those of the other groups"
        counts = f"{how_many(len(clear), len(rows), 'departure')}, by {AT_ONCE}."
        sentence = " ".join([*(_departing(part, row) for row in first), counts])
        more = [row for row in clear if row is not first[0]]
        yield finding(first[0], "stand_out", headline, sentence, shown=True, more=more)


def _departing(part: pl.DataFrame, row: Result) -> str:
    kind = row["metric"].removeprefix("perception.").removesuffix("_departure")
    who, size = group(row["group"], INTERACTIONS[row["subset"]][1]), f"{signed(row)} ({bounds(row)}, {unit(row)})"
    what = "The rise over the whole range" if kind == "slope" else "The height of the two ends above the middle"
    own = by_place(part, kind).get(place(row))
    if own is None:
        return f"{what} in {dimension(row['concept'])} differs by {size} between {who} and the other groups."
    others = signed({**own, "value": own["value"] - row["value"]})
    return (
        f"{what} in {dimension(row['concept'])} is {signed(own)} for {who} and {others} on average for the other "
        f"groups: a difference of {size}."
    )


def _gaps(part: pl.DataFrame) -> Iterator[Finding]:
    """Differences between groups of photographs: not effects, since photographs differ in more than the label."""
    for name in GROUPED if not metric_rows(part, "causal_effect").height else ():
        rows, clear = decided(part, "gap", subset=name)
        by = f"By {attribute(name)}"
        if rows and not clear:
            headline = f"{by}, no difference is found"
            yield _none_found(rows, "gap", headline, "difference", "between groups")
        for widest in clear[:1]:
            row = swapped(widest) if widest["value"] < 0 else widest  # the higher group less the lower one
            first, second = pair(row)
            headline = f"{by}, the widest gap that is found is in {dimension(row['concept'])}: {first} above {second}"
            within = f"{row['variant']}, " if row["variant"] else ""
            sentence = "Δ (the score less that of the neutral prompt)"
            sentence += f" of {first} less that of {second} is {signed(row)} ({bounds(row)}; {within}{unit(row)},"
            sentence += f" n = {row['n']}). {how_many(len(clear), len(rows), 'difference')}, by {AT_ONCE}."
            sentence += " Pictures of two groups differ in more than the label."
            shown = [Contrast(f"{dimension(each['concept'])}: {against(each)}", each) for each in (row, *clear[1:4])]
            more = f"more {judged(row['concept'])} in images labelled {first} than in those labelled {second}"
            answer = f"The model sees {more}, by {number(row)} ({unit(row)})."
            yield finding(row, "gap", headline, sentence, shown=True, more=clear[1:], answer=answer, contrasts=shown)


def _markedness(part: pl.DataFrame) -> Iterator[Finding]:
    for name in ("race", "gender"):
        table = metric_rows(part, "markedness").filter(pl.col("n") > 0, subset=name)
        if table.height < 2:
            continue
        rows = table.sort("value", descending=True).to_dicts()
        sentence = f"Plain “person” fits better than the group's own word in {'; '.join(map(_share, rows))}."
        gaps, clear = decided(part, "markedness_gap", subset=name)
        if not clear:
            headline = f"By {name}, no group is found to be the default more than another"
            sentence += f" No difference is found.{_could_be(gaps)}" if any(map(has_interval, gaps)) else ""
            verdict = verdict_of_rows(gaps)
            yield finding(rows[0], "markedness", headline, sentence, verdict=verdict, more=[*rows[1:], *gaps])
            continue
        row = swapped(clear[0]) if beyond(clear[0]) < 0 else clear[0]
        than = row["against"] if row["value"] >= 0 else "their word explains"
        headline, places = f"The model treats {row['group']} as the default more than {than}", decimals_of(row, 0)
        expected = signed({**row, "value": row["landmark"] or 0.0}, places)
        within = f"; {row['variant']}" if row["variant"] else ""
        sentence += (
            f" The share of {row['group']} less that of {row['against']} is {signed(row, places)} points "
            f"({bounds(row, places)}{within}); for a model that does not know these groups it would be {expected}."
        )
        told: Entry = {"answer": _default(row, {each["group"]: each for each in rows})}
        yield finding(row, "markedness", headline, sentence, shown=True, more=rows, **told)


def _default(row: Result, shares: dict[str, Result]) -> str:
    """Both groups' shares, for a reader who knows no markedness."""
    both = [shares[name] for name in (row["group"], row["against"]) if name in shares]
    fits = [
        f"“{each['concept']}” for {number(each, decimals=0)} % of the images labelled {each['group']}" for each in both
    ]
    return f"For the model, plain “person” fits better than {', and better than '.join(fits)}."


def _share(row: Result) -> str:
    everyone = f"; {row['expected']:.0f} % of everybody's images" if row["expected"] is not None else ""
    return f"{number(row, decimals=0)} % of the images of {row['group']} (word “{row['concept']}”{everyone})"


def _ranking(part: pl.DataFrame) -> Iterator[Finding]:
    """Who comes first, mean over the dimensions, at the largest k there is."""
    for name in GROUPED:
        every, _ = decided(part, "skew", subset=name, concept=MEAN)
        largest = max(map(top_size, every), default=0)
        rows = sorted((row for row in every if top_size(row) == largest), key=beyond)
        if len(rows) < 2:
            continue
        least, most = rows[0], rows[-1]
        clear = [most] if found(most) and beyond(most) > 0 else []
        clear += [least] if found(least) and beyond(least) < 0 else []
        groups, tops = [group(row["group"], name) for row in clear], _tops(part, most, least)
        first, verdict = "among the first of its rankings", DIFFERENCE if clear else verdict_of_rows([most, least])
        headline = f"By {attribute(name)}, no group is found more often than another {first}"
        if len(clear) == 2:
            headline = f"More images labelled {groups[0]} than {groups[1]} are {first}"
        elif clear:
            headline = (
                f"{'More' if clear[0] is most else 'Fewer'} images labelled {groups[0]} are {first} than among all"
            )
        sentence, (row, *more) = TOO_FEW if verdict == TOO_LITTLE else tops, clear or [most, least]
        yield finding(row, "ranking", headline, sentence, verdict=verdict, more=more)


def _tops(part: pl.DataFrame, most: Result, least: Result) -> str:
    skews = metric_rows(part, "skew", absent=True).filter(subset=most["subset"], template=most["template"])
    even = 1 / max(skews["group"].n_unique(), 1)
    shares, pool = [], []
    for row in (most, least):
        each = skews.filter(pl.col("concept") != MEAN, group=row["group"])["value"].to_list() or [row["value"]]
        share = even * sum(0.0 if skew is None else math.exp(skew) for skew in each) / len(each)
        ends = {end: None if row[end] is None else even * math.exp(row[end]) for end in BOUNDS}
        places = decimals_for({"value": share, **ends})
        interval = f" ({percent_range(ends['low'], ends['high'], places)})" if has_interval(row) else ""
        shares.append(f"{percent(share, places)} {group(row['group'], row['subset'])}{interval}")
        pool.append(percent(even * math.exp(row["landmark"] or 0.0), 0))
    return (
        f"Ranked by how well each judgement fits, such as “warm”, the first {top_size(most)} of {most['n']} images are "
        f"{' and '.join(shares)}, mean over the judgements; all images ranked are {' and '.join(pool)}."
    )


def _neutral(part: pl.DataFrame) -> Iterator[Finding]:
    """What subtracting the neutral prompt does to the groups, where groups differ: a description."""
    rows = metric_rows(part, "narrowing").filter(pl.col("landmark").is_not_null(), concept="groups").to_dicts()
    for row in rows if decided(part, "gap")[1] else ():
        moved = "moves the groups apart" if row["value"] > 1 else "brings the groups closer together"
        sentence = (
            f"The groups' mean scores are {number(row)} times as far apart once each image's score of the neutral "
            f"prompt is subtracted; those of shuffled groups are {row['landmark']:.2f} times."
        )
        yield finding(row, "neutral", f"Subtracting the neutral prompt {moved}", sentence, verdict=FACT)


FINDERS = (
    _variant,
    _no_neutral,
    _effects,
    _interactions,
    _stand_out,
    _gaps,
    _markedness,
    _ranking,
    _neutral,
    mirror_findings,
)
