"""The chapter on the classics: labels that hurt, retrieval, image tests; and known truth on drawn people."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import polars as pl

from beholder.chapter.chapter import INTERVALS, Cell, Chapter, Column, Question, Table, p_cell, percent_cell, tabled
from beholder.chapter.charts import Figure, dots, each_model, widest
from beholder.chapter.finding import CHECK, Contrast, Finding, Side, deciding_rows, finding, valued, verdict_of_rows
from beholder.chapter.numbers import (
    ABSENT,
    Result,
    has_interval,
    percent,
    plural,
    points,
    points_range,
    row_p_value,
    signed,
)
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND
from beholder.comparison.groups import REST
from beholder.core.results import WITHIN
from beholder.glasshouse.planted import REFERENCE, implied_occupation
from beholder.glasshouse.world import BRANCH_OCCUPATIONS
from beholder.studies.classics.prompts import BY_LOT, DRAWN, OWN_WORK

SAYS = {
    "share": "have a first choice among the {} labels",
    "belief": "is the mean belief in the {} labels",
    "retrieved": "is how often a picture comes among the first for {}",
}  # what a gap is of, by its metric without the ending
GIVES = {"label": "gives {} labels to {}", "retrieval": "retrieves for {} rather {}"}
FAR = 0.05  # belief farther than this from what is planted is not found


def classics_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """By category and attribute the widest gap; how far lists and templates move it; retrieval; image tests."""
    yield from planted_findings(part)
    for kind, metrics in {"label": ("share", "belief"), "retrieval": ("retrieved",)}.items():
        gaps = [row for metric in metrics for row in deciding_rows(part, f"{metric}_gap").to_dicts()]
        own: dict[tuple[str, str], list[Result]] = {}
        for row in gaps:
            own.setdefault((row["concept"] if kind == "label" else "words", row["subset"]), []).append(row)
        yield from (_gap(part, rows, kind) for rows in own.values())
    if rows := [row for row in valued(part, "movement") if row["template"] == "both" and row["group"]]:
        row = max(rows, key=lambda each: float(each["value"]))
        text = f"The share of {row['concept']} first choices moves most for {_who(row['group'])}: {row['note']}."
        headline = "Shares move with the list of classes and the template"
        yield finding(row, "moves", headline, text, verdict=FACT, effect=row["value"])
    if rows := valued(part, "image_association"):
        yield _image_tests(rows)


def _gap(part: pl.DataFrame, rows: list[Result], kind: str) -> Finding:
    """The widest gap that was found, of shares if there is one; else that none was."""
    found = [row for row in rows if row["verdict"] == DIFFERENCE]
    of_shares = [row for row in found if _measure(row) != "belief"]
    row = max(of_shares or found or rows, key=lambda each: abs(each["value"]))
    attribute, category = row["subset"], row["concept"]
    sides = _sides(part, row)
    numbers = f"{percent(sides[0].value, 1)} against {percent(sides[1].value, 1)}"
    bounds = f"95 % interval {points_range(row)} points, p {row_p_value(row)}" if has_interval(row) else "no interval"
    strata = f"; within {row['variant'].removeprefix(WITHIN)}" if row["variant"] else ""
    apart = f"{points(row['value'])} points apart ({bounds}, n = {row['n']:,}{strata})"
    what = f"{category} labels" if kind == "label" else "who is retrieved"
    headline = f"No difference in {what} by {attribute} was found"
    if found:
        headline = f"{what[:1].upper()}{what[1:]} differ{'s' if kind == 'retrieval' else ''} by {attribute}"
    widest_gap = "" if found else "The widest gap: "
    who, whom = (_who(str(row[end])) for end in ("group", "against"))
    sentence = (
        f"{widest_gap}For {who}, {numbers} for {whom} {SAYS[_measure(row)].format(category)} ({row['template']}), "
    )
    others = len({(each["group"], each["concept"]) for each in found} - {(row["group"], category)})
    more = f" So do {others} more groups or kinds of words." if others else ""
    made = finding(row, kind, headline, f"{sentence}{apart}.{more}", verdict=verdict_of_rows(rows), more=found[:3])
    often = "more" if row["value"] > 0 else "less"
    answer = f"The model {GIVES[kind].format(category, who)} {often} often than {whom} ({numbers})."
    shown = Contrast(f"{category}: {row['template']}", row, sides)
    return made._replace(effect=abs(row["value"]), answer=answer if found else "", contrasts=(shown,))


def _measure(row: Result) -> str:
    return str(row["metric"]).partition(".")[2].removesuffix("_gap")


def _sides(part: pl.DataFrame, row: Result) -> tuple[Side, Side]:
    """A group's own number, and that of whom it is compared with, which the plain difference tells."""
    keys = ("model", "subset", "group", "concept", "template")
    own, gap = (
        next(each for each in valued(part, metric) if all(each[key] == row[key] for key in keys))
        for metric in (_measure(row), f"{_measure(row)}_gap")
    )
    against = Side(row["against"], own["value"] - gap["value"], row["n"] - own["n"])
    return Side(row["group"], own["value"], own["n"]), against


def _who(group: str) -> str:
    return group if group == REST else plural(group) if plural(group) != group else f"those labelled {group}"


def _image_tests(rows: list[Result]) -> Finding:
    """How many tests find an association, and the strongest of them."""
    found = sorted((row for row in rows if row["verdict"] == DIFFERENCE), key=lambda row: -abs(row["value"]))
    row = found[0] if found else max(rows, key=lambda each: abs(each["value"]))
    near = row["template"].split(" – ")[row["value"] < 0]
    told = f"“{row['group']}” lies nearer to “{near}” than “{row['against']}” does"
    size = f"d = {row['value']:.2f}, p {row_p_value(row)} over all tests".replace("-", "−")
    headline = f"{len(found)} of {len(rows)} image tests find an association"
    sentence = f"The largest effect is in {row['concept']}: {told} ({size})."
    made = finding(row, "images", headline, sentence, verdict=verdict_of_rows(rows), more=found[1:4])
    return made._replace(effect=abs(row["value"]), answer=f"In the model's image vectors {told}." if found else "")


# Tables and charts

LEFT: list[Column] = [("Attribute", lambda row: row["subset"] or "everyone"), ("Group", "group")]
MANY = 12  # rows above which a table is better opened than shown


def classics_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Shares by group for each list; gaps; movement; class by class; retrieval; image tests."""
    beliefs = {_key(row): row for row in valued(part, "belief")}
    shares = {_key(row): row for row in valued(part, "share") if _key(row) in beliefs}
    for listed in dict.fromkeys(row["template"] for row in shares.values()):
        own = [row for row in shares.values() if row["template"] == listed]
        columns: list[Column] = [("n", "n")]
        for name in dict.fromkeys(row["concept"] for row in own):
            columns += [(f"{name}: first", partial(_cell, shares, name)), ("belief", partial(_cell, beliefs, name))]
        caption = f"Per cent of pictures whose first choice is such a label, and mean belief. {INTERVALS}"
        first = [row for row in own if row["concept"] == own[0]["concept"]]
        yield tabled(part, first, LEFT, columns, title=f"Labels: {listed}", caption=caption, topic="labels")
    for topic, metrics in {"labels": ("share", "belief"), "retrieval": ("retrieved",)}.items():
        rows = [row for metric in metrics for row in deciding_rows(part, f"{metric}_gap").to_dicts()]
        rows.sort(key=lambda row: (row["verdict"] != DIFFERENCE, -abs(row["value"])))
        columns = [("Against", "against"), ("Gap", _points), ("p", p_cell), ("n", "n")]
        what: Column = ("What", lambda row: f"{row['concept']}, {_measure(row)}")
        caption = f"In points, within the other attributes. Bold: a difference was found. {INTERVALS}"
        yield from _listed(part, rows, [what, ("Asked", "template"), *LEFT], columns, f"Gaps: {topic}", caption, topic)
    rows = [row for row in valued(part, "movement") if row["template"] != "both"]
    columns = [("Over", "template"), ("Points", lambda row: points(row["value"])), ("From, to", "note")]
    caption = "Largest less smallest share of first choices: over the lists in one template, over the templates of one."
    title, where = "How far the shares move with what is offered", ("Category", "concept")
    yield from _listed(part, rows, [*LEFT, where], columns, title, caption, "labels")
    columns = [("n", "n"), ("First choice", percent_cell)]
    left: list[Column] = [("Class", "concept"), *LEFT]
    yield from _listed(part, valued(part, "class_share"), left, columns, "Class by class", f"{INTERVALS}", "labels")
    rows = [row for metric in ("max_skew", "ndkl") for row in valued(part, metric)]
    left = [("Attribute", "subset"), ("Measure", lambda row: f"{_measure(row)}, {row['template']}")]
    columns = [
        ("Held against", "concept"),
        ("Found", partial(_number, "value")),
        ("Shuffled people", partial(_number, "expected")),
    ]
    caption = "Mean over the prompts, held against the shares of all pictures that are ranked (pool), or even ones."
    yield from _listed(part, rows, left, [*columns, ("n", "n")], "MaxSkew and NDKL", caption, "retrieval")
    alone = {(row["model"], row["concept"]): row for row in valued(part, "image_p")}
    own_p: Column = ("p of the test", lambda row: _number("value", alone[row["model"], row["concept"]]))
    left = [("Test", "concept"), ("X", "group"), ("Y", "against"), ("A – B", "template")]
    caption = "Positive: X lies nearer to A rather than B than Y does. p: over all tests; p of the test: one-sided, as "
    columns = [("d", _effect), ("p", p_cell), own_p, ("n", "n")]
    rows, caption = (
        valued(part, "image_association"),
        f"{caption}iEAT prints it. Bold: a difference was found. {INTERVALS}",
    )
    yield from _listed(part, rows, left, columns, "Image tests", caption, "images")


def _listed(
    part: pl.DataFrame,
    rows: list[Result],
    left: list[Column],
    columns: list[Column],
    title: str,
    caption: str,
    topic: str,
) -> Iterator[Table]:
    if rows:
        made = tabled(part, rows, left, columns, title=title, caption=caption, topic=topic)
        yield made._replace(long=len(rows) > MANY and topic != "images")


def _key(row: Result, concept: str = "") -> tuple[object, ...]:
    return row["model"], row["subset"], row["group"], concept or row["concept"], row["template"]


def _cell(rows: dict[tuple[object, ...], Result], concept: str, row: Result) -> Cell:
    return percent_cell(rows.get(_key(row, concept)))


def _points(row: Result) -> Cell:
    return Cell(signed(row["value"]), points_range(row) if has_interval(row) else "", row["verdict"] == DIFFERENCE)


def _number(name: str, row: Result) -> str:
    return ABSENT if row[name] is None else f"{row[name]:.3f}"


def _effect(row: Result) -> Cell:
    bounds = f"{row['low']:.2f} to {row['high']:.2f}" if has_interval(row) else ""
    return Cell(f"{row['value']:.2f}", bounds, row["verdict"] == DIFFERENCE)


def _figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Shares of each category by group, of the paper's list."""
    rows = [row for row in valued(part, "share") if row["subset"] and has_interval(row)]
    for attribute in dict.fromkeys(row["subset"] for row in rows):
        own = [row for row in rows if row["subset"] == attribute and row["template"] == rows[0]["template"]]
        caption = "Share of pictures whose first choice is such a label, with each group's own 95 % interval."
        title = f"First choices by {attribute}: {rows[0]['template']}"
        yield Figure(f"labels-{attribute}", title, caption, dots(widest(own), "share of pictures"), "labels")


# Known truth, on drawn people


class Planted(NamedTuple):
    """Something known, and what the audit found."""

    row: Result
    label: str
    known: str
    as_planted: bool


def planted_belief(category: str, side: str) -> float:
    """What the captions of the reference model imply: mean belief in a category over the four kinds of work."""
    work = BRANCH_OCCUPATIONS.values()
    return sum(implied_occupation(outfit, side)[word] for outfit in work for word in DRAWN.categories[category]) / len(
        work
    )


def planted(part: pl.DataFrame) -> Iterator[Planted]:
    """Mean beliefs by gender that captions imply; and two image tests, of what people wear and of a lot."""
    part = part.filter(pl.col("model").str.starts_with(REFERENCE), dataset="glasshouse")
    for row in valued(part, "belief"):
        if row["subset"] == "gender" and row["concept"] in DRAWN.categories:
            known = planted_belief(row["concept"], row["group"])
            label = f"belief in {row['concept']}, {plural(row['group'])}"
            yield Planted(row, label, f"{known:.3f}", abs(row["value"] - known) <= FAR)
    for row in valued(part, "image_association"):
        expected, verdict = {OWN_WORK: ("above 0", DIFFERENCE), BY_LOT: ("0", NONE_FOUND)}[row["concept"]]
        yield Planted(row, f"image test “{row['concept']}”", expected, row["verdict"] == verdict)


def planted_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """How many of the planted numbers the audit finds."""
    if rows := list(planted(part)):
        told = "; ".join(f"{each.label}: planted {each.known}, found {each.row['value']:.3f}" for each in rows)
        hits = sum(each.as_planted for each in rows)
        headline = f"The audit finds {hits} of {len(rows)} planted numbers"
        missed = float(hits < len(rows))
        yield finding(rows[0].row, "planted", headline, f"{told[:1].upper()}{told[1:]}.", verdict=FACT, effect=missed)


def planted_table(results: pl.DataFrame) -> Table | None:
    """What was planted beside what was found."""
    lines = [{**each.row, "label": each.label, "known": each.known} for each in planted(results)]
    caption = "Planted: what follows from the captions of the reference model, and from who wears what."
    columns: list[Column] = [("Planted", "known"), ("Found", partial(_number, "value")), ("n", "n")]
    left: list[Column] = [("Result", "label")]
    tables = _listed(results, lines, left, columns, "Known truth against what the audit found", caption, "planted")
    return next(tables, None)


CHAPTER = Chapter(
    topics={"labels": "Labels that hurt", "retrieval": "Retrieval", "images": "Image tests", "planted": "Known truth"},
    questions={
        "planted": Question("Does the audit find what was planted in the reference model?", "planted", role=CHECK),
        "label": Question("Whom does the model give labels that hurt?", "labels", "Labels that hurt"),
        "moves": Question("How far does that move with the list of classes and the template?", "labels"),
        "retrieval": Question("Whose pictures come first for words of character?", "retrieval", "Retrieval"),
        "images": Question("Which pictures lie close together, without any word?", "images", "Image tests"),
    },
    findings=classics_findings,
    tables=classics_tables,
    figures=lambda results: each_model(results, _figures),
    planted=planted_table,
)
