"""The chapter on the classics: labels that hurt, retrieval, image tests; and known truth on drawn people."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import polars as pl

from beholder.chapter import chapter, numbers
from beholder.chapter.chapter import Cell, Chapter, Table, decimal_cell, percent_cell, points_cell, read_told, tabled
from beholder.chapter.charts import Figure, dots, each_model, widest
from beholder.chapter.finding import Contrast, Finding, Side, deciding_rows, finding, valued, with_metrics
from beholder.chapter.finding import verdict_of_rows as verdict_of
from beholder.chapter.numbers import Result, has_interval, people, percent, plural, points_range, row_p_value, signed
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND
from beholder.core.read import read_table
from beholder.core.results import WITHIN
from beholder.glasshouse.planted import REFERENCE, implied_occupation
from beholder.glasshouse.world import BRANCH_OCCUPATIONS
from beholder.studies.classics.prompts import BY_LOT, DRAWN, OWN_WORK

SAYS = {
    "share": "have a first choice among the {} labels",
    "belief": "is the mean belief in the {} labels",
    "retrieved": "is how often a picture comes among the first for {}",
    "place": "is the mean place of a picture in a search for {} (100 %: first, 0 %: last)",
}  # what a gap is of, by its metric without the ending
MANY = 40  # rows above which a table is better opened than shown
FAR = 0.05  # belief farther than this from what is planted is not found


def classics_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """By category and attribute the widest gap; how far lists and templates move it; retrieval; image tests."""
    yield from planted_findings(part)
    for kind, metrics in {"label": ("share_gap", "belief_gap"), "retrieval": ("retrieved_gap", "place_gap")}.items():
        own: dict[tuple[str, str], list[Result]] = {}
        for row in _rows(part, metrics):
            own.setdefault((row["concept"] if kind == "label" else "words", row["subset"]), []).append(row)
        yield from (_gap(part, rows, kind) for rows in own.values())
    if rows := [row for row in _rows(part, ("movement",)) if row["template"] == "both" and row["group"]]:
        text = f"The share of {rows[0]['concept']} first choices moves most for {people(rows[0]['group'])}: "
        headline = "Shares move with the list of classes and the template"
        yield finding(rows[0], "moves", headline, f"{text}{rows[0]['note']}.", verdict=FACT, effect=rows[0]["value"])
    if rows := _rows(part, ("image_association",)):
        row, many = rows[0], sum(row["verdict"] == DIFFERENCE for row in rows)
        near = row["template"].split(" – ")[row["value"] < 0]
        told = f"“{row['group']}” lies nearer to “{near}” than “{row['against']}” does"
        size = f"d = {signed(row['value'] / 100, 2)}" + (
            f", p {row_p_value(row)} over all tests" if row["p_value"] else ""
        )
        headline = f"{many} of {len(rows)} image tests find an association"
        sentence = f"The largest effect is in {row['concept']}: {told} ({size})."
        answer = f"The model sees more of “{near}” in pictures of “{row['group']}” than in those of “{row['against']}”."
        made = finding(row, "images", headline, sentence, verdict=verdict_of(rows), more=rows[1:many])
        yield made._replace(effect=abs(row["value"]), answer=answer if many else "")


def _rows(part: pl.DataFrame, metrics: tuple[str, ...]) -> list[Result]:
    """The rows that decide: those in which a difference was found first, then the widest."""
    rows = [row for metric in metrics for row in deciding_rows(part, metric).to_dicts()]
    return sorted(rows, key=lambda row: (row["verdict"] != DIFFERENCE, -abs(row["value"])))


def _gap(part: pl.DataFrame, rows: list[Result], kind: str) -> Finding:
    """The widest gap that was found, of shares in the paper's list if there is one; else that none was."""
    found, paper = [row for row in rows if row["verdict"] == DIFFERENCE], valued(part, "share")
    first = [row for row in found if paper and row["template"] == paper[0]["template"]]
    shares = [row for row in first or found if _measure(row) != "belief"]
    row = (shares or first or found or rows)[0]
    attribute, category, sides = row["subset"], row["concept"], _sides(part, row)
    both = f"{percent(sides[0].value, 1)} against {percent(sides[1].value, 1)}"
    bounds = f"95 % interval {points_range(row)} points, p {row_p_value(row)}" if has_interval(row) else "no interval"
    strata = f"; within {row['variant'].removeprefix(WITHIN)}" if row["variant"] else ""
    apart = f"{numbers.points(row['value'])} points apart ({bounds}, n = {row['n']:,}{strata})"
    what = f"{category} labels" if kind == "label" else "who is retrieved"
    headline = f"No difference in {what} by {attribute} was found"
    if found:
        headline = f"{what[:1].upper()}{what[1:]} differ{'s' if kind == 'retrieval' else ''} by {attribute}"
    who, whom = (people(str(row[end])) for end in ("group", "against"))
    sentence = f"{'' if found else 'The widest gap: '}For {who}, {both} for {whom} "
    sentence += f"{SAYS[_measure(row)].format(category)} ({row['template']}), {apart}."
    others = len({(each["group"], each["concept"]) for each in found} - {(row["group"], category)})
    more = f" {others} more of these gaps were found." if others else ""
    made = finding(row, kind, headline, sentence + more, verdict=verdict_of(rows), more=found[:3])
    high, low = (sides, sides[::-1])[row["value"] < 0]
    does = {
        "retrieved": "shows {} more often than {} in a search for {} (",
        "belief": "puts more of its belief on {2} labels for {0} than for {1} (",
        "place": "puts {} nearer to the front than {} in a search for {} (mean place, 100 % being the first: ",
    }.get(_measure(row), "gives {2} labels more often to {0} than to {1} (")
    does = does.format(people(high.group), people(low.group), category)
    answer = f"The model {does}{percent(high.value)} against {percent(low.value)})."
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


# Tables and charts


def _number(name: str, row: Result) -> str:
    return numbers.ABSENT if row[name] is None else f"{row[name]:.3f}"


COLUMNS: dict[str, str | Callable[[Result], Cell | str]] = {
    **dict.fromkeys(("Category", "Class", "Words", "Held against", "Test"), "concept"),
    **{"Asked": "template", "Over": "template", "A – B": "template", "Ends": "note", "n": "n", "p": chapter.p_cell},
    **{"Group": "group", "X": "group", "Against": "against", "Y": "against", "Of": lambda row: _measure(row)},
    **{"Attribute": lambda row: row["subset"] or "everyone", "First": percent_cell, "Gap": points_cell},
    **{name: partial(_number, value) for name, value in {"Found": "value", "Shuffled": "expected"}.items()},
    **{"alone": partial(_number, "alone"), "Belief": lambda row: numbers.percent(row["belief"]), "d": decimal_cell},
    "Points": lambda row: numbers.points(row["value"]),
}


def classics_tables(part: pl.DataFrame) -> Iterator[Table]:
    """The tables of `tables.csv`: of which metrics, with which columns."""
    place = ("model", "subset", "group", "concept", "template")
    part = with_metrics(part, part, place, belief="belief", alone="image_p")
    for topic, metrics, title, caption, *sides in read_table(Path(__file__).with_name("tables.csv")).iter_rows():
        if rows := _rows(part, tuple(metrics.split())):
            left, columns = ([(name, COLUMNS[name]) for name in side.split("; ")] for side in sides)
            made = tabled(part, rows, left, columns, title=title, caption=caption, topic=topic)
            yield made._replace(long=len(rows) > MANY)


def _figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Shares of each category by group, of the paper's list."""
    rows = [row for row in valued(part, "share") if row["subset"] and has_interval(row)]
    for attribute in dict.fromkeys(row["subset"] for row in rows):
        own = [row for row in rows if row["subset"] == attribute and row["template"] == rows[0]["template"]]
        caption = "Share of pictures whose first choice is such a label, with each group's own 95 % interval."
        title = f"First choices by {attribute}: {rows[0]['template']}"
        yield Figure(f"labels-{attribute}", title, caption, dots(widest(own), "share of pictures"), "labels")


# Known truth, on drawn people


def planted_belief(category: str, side: str) -> float:
    """What the captions of the reference model imply: mean belief in a category over the four kinds of work."""
    every = [implied_occupation(outfit, side) for outfit in BRANCH_OCCUPATIONS.values()]
    return sum(each[word] for each in every for word in DRAWN.categories[category]) / len(every)


def planted(part: pl.DataFrame) -> Iterator[tuple[str, bool]]:
    """Each planted number beside the one found, and whether they agree; mean beliefs by gender, and image tests."""
    part = part.filter(pl.col("model").str.starts_with(REFERENCE), dataset="glasshouse")
    for row in valued(part, "belief"):
        if row["subset"] == "gender" and row["concept"] in DRAWN.categories:
            known = planted_belief(row["concept"], row["group"])
            text = f"belief in {row['concept']}, {plural(row['group'])}: planted {known:.3f}, found {row['value']:.3f}"
            yield text, abs(row["value"] - known) <= FAR
    for row in valued(part, "image_association"):
        true, verdict = {OWN_WORK: ("above 0", DIFFERENCE), BY_LOT: ("0", NONE_FOUND)}[row["concept"]]
        found = f"image test “{row['concept']}”: planted {true}, found {row['value']:.2f}"
        yield f"{found} ({row['verdict']})", row["verdict"] == verdict


def planted_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """How many of the planted numbers the audit finds."""
    if texts := dict(planted(part)):
        hits, row = sum(texts.values()), valued(part, "belief")[0]
        headline, told = f"The audit finds {hits} of {len(texts)} planted numbers", "; ".join(texts)
        off = float(hits < len(texts))
        yield finding(row, "planted", headline, f"{told[:1].upper()}{told[1:]}.", verdict=FACT, effect=off)


TOLD = read_told(__file__)
CHAPTER = Chapter(
    topics=TOLD.topics,
    questions=TOLD.questions,
    findings=classics_findings,
    tables=classics_tables,
    figures=lambda results: each_model(results, _figures),
)
