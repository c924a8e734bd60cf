"""Disparity's chapter: out of hundreds of concepts, those with the widest gaps come first. All are in results.csv."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from beholder.chapter import chapter
from beholder.chapter.chapter import INTERVALS, Cell, Chapter, Column, Table, p_cell, points_cell, tabled
from beholder.chapter.finding import by_column, by_model, metric_rows, one_row
from beholder.chapter.numbers import ABSENT, Result, decimal, drawn, has_interval, percent, points, points_range, signed
from beholder.comparison.family import DIFFERENCE
from beholder.datasets.glasshouse import OBJECTS_NAME
from beholder.glasshouse.planted import PLANTED_OBJECTS, REFERENCE, implied_gap, implied_matched_gap
from beholder.studies.disparity import findings
from beholder.studies.disparity.charts import disparity_figures
from beholder.studies.disparity.findings import Pair, disparity_findings

FEW, TOP = 5, 20  # how many gaps in either direction the short and the long table show
WORDS = "Words: how much nearer the concept is to the first group's words, cosine. "
PAIR = Pair("man", "woman")
Base = Callable[[pl.DataFrame, Pair], list[Result]]  # the concepts of a model and a pair that a table shows
Make = Callable[[Result | None], Cell | str]
Columns = Sequence[Column]


CAPTIONS = {  # by topic
    "means": f"Mean average precision of each group; differences in points. {INTERVALS} As published: the difference "
    "of these means. Without that: the mean of the gaps at matched prevalence. Mean width: how far matched gaps are "
    "from 0, and in small print with shuffled labels. p: from shuffled labels. Bold: a difference was found. Gaps "
    "found: concepts with a difference, all tested together.",
    "gaps": "Average precision of each group, and the gap in points. Published: as in the study. Matched (read this "
    "one): at the same prevalence for both groups, less the gap that few images alone produce. Its interval and p hold "
    "for all concepts at once; bold: a difference was found. Found from: the smallest gap that a test of this concept "
    "alone would find in four of five data sets.",
    "calibration": "Off by (read this one): root of the mean squared distance between confidence and what the images "
    "show, in points, at the same prevalence for all groups, less what chance adds; p: is it the same for both, for "
    "all concepts at once; bold p: a difference was found. ECE: expected calibration error in ten equal bins "
    "(the paper states no number), and its gap (positive: worse for the first group; § 3.2 of the paper contradicts "
    "itself on the sign); equal counts: the gap in bins of equally many "
    "images. These and the gap of the Brier score depend on the groups' sizes and prevalences. "
    f"{INTERVALS}",
    "causes": "Area: share of the image that the largest box covers. Boxes: how many. Both are means over the images "
    "of each group that show the concept: described, not tested. Gap: matched, in points. Same sizes: the gap that "
    "remains when sizes are distributed alike; companions: the three concepts that stand beside it most unequally; "
    "brightness, sharpness: of whole pictures. Names: how differently annotators name it.",
    "agreement": "Green: published gaps wider than five points in the same direction; red: in opposite directions; "
    "yellow: all others. Same sign: gaps of the same sign in another model, 50 % by chance.",
    "images": "Outranked: how often an image without the concept scores above one with it (0 %: never, 50 %: at "
    "random). Overlooked: images that show it, lowest score first. Mistaken: images that do not, highest score first.",
    "planted": "On some people only a strip of an object is drawn, more often in one group. Planted: the gap in points "
    "of a model that ranks whole objects first and the others at random; as published, and at matched prevalence. A "
    "trained model also misses whole objects and may recognise a strip. Small print: 95 % interval for all objects at "
    "once; bold: a difference was found.",
}


def disparity_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; several models follow one another in each."""
    if not findings.pairs(part):
        return
    yield mean_table(part)
    yield gap_table(part, FEW)
    yield gap_table(part, TOP)
    for metrics, make in (
        (("ece",), calibration_table),
        (("agreement_count", "model_agreement"), agreement_table),
        (("area_gap", "ap_gap_same_companions"), cause_table),
        (("outranked",), image_table),
    ):
        if any(metric_rows(part, metric).height for metric in metrics):
            yield make(part)


def _lines(part: pl.DataFrame, base: Base, both: Sequence[str], compared: Iterable[str] = ()) -> list[Result]:
    """The concepts of every model and pair, each with the rows of other metrics: of both groups, and of the pair."""
    lines = []
    for model, rows in by_model(part):
        for pair in findings.pairs(rows):
            own = findings.of_pair(rows, pair)
            tables = {(metric, 0): by_column(metric_rows(own, metric), "concept") for metric in compared}
            for metric in both:
                tables[metric, 0], tables[metric, 1] = findings.sides(rows, metric, pair)
            for row in base(rows, pair):
                others = {key: table.get(row["concept"]) for key, table in tables.items()}
                lines.append({**row, "model": model, "pair": pair.less, "others": others})
    return lines


def _other(metric: str, make: Make, side: int = 0) -> Callable[[Result], Cell | str]:
    """A cell of another metric's row."""
    return lambda line: make(line["others"][metric, side])


def _both(part: pl.DataFrame, head: str, metric: str, make: Make) -> list[Column]:
    """A column for each of the two groups; of several pairs, for the first and the second."""
    known = findings.pairs(part)
    first, second = known[0].names if len(known) == 1 else ("first", "second")
    return [(f"{head}{first}", _other(metric, make)), (second, _other(metric, make, 1))]


def _table(
    part: pl.DataFrame, rows: list[Result], left: Columns, columns: Columns, topic: str, title: str, **others: Any
) -> Table:
    return tabled(part, rows, left, columns, title=title, caption=CAPTIONS[topic], topic=topic, **others)


def _left(part: pl.DataFrame) -> Columns:
    """The columns that name a concept; with one for the pair, if there are several."""
    several = len(findings.pairs(part)) > 1
    return [("Pair", "pair"), ("Concept", "concept")] if several else [("Concept", "concept")]


def mean_table(part: pl.DataFrame) -> Table:
    """Mean average precision of each group, the mean matched gap, and how many gaps were found."""
    lines = [{"model": model, **line} for model, rows in by_model(part) for line in _mean_lines(rows)]
    count: Column = ("Concepts", lambda line: str(line["row"]["n"]) if line["row"] else ABSENT)
    columns: list[Column] = [("Mean", "mean"), count, ("p", "p"), ("Gaps found", "found")]
    return _table(part, lines, [("Images", "images")], columns, "means", "On average over concepts")


def _mean_lines(rows: pl.DataFrame) -> Iterator[Result]:
    empty = {"p": "", "found": ""}
    for group in findings.groups(rows):
        row = one_row(rows, "mean_average_precision", group=group)
        yield {"images": group, "mean": chapter.percent_cell(row, strong=True), "row": row, **empty}
    for pair in findings.pairs(rows):
        compared = findings.of_pair(rows, pair)
        published, width, chance, found = (
            one_row(compared, metric) for metric in ("mean_ap_gap", "gap_spread", "gap_spread_expected", "gaps_shown")
        )
        matched = one_row(compared, "mean_ap_gap_matched", decides=True)
        count = f"{int(found['value'])} of {found['n']}" if found else ABSENT
        yield {"images": f"{pair.less}, as published", "mean": points_cell(published), "row": published, **empty}
        yield {"images": pair.less, "mean": points_cell(matched), "row": matched, "p": p_cell(matched), "found": count}
        wide = Cell(ABSENT)
        if width and chance:
            detail = f"shuffled: {points(chance['low'])}–{points(chance['high'])}"
            wide = Cell(points(width["value"]), detail, strong=width["verdict"] == DIFFERENCE)
        p_value = p_cell(width if chance else None)
        yield {"images": f"{pair.less}, mean width", "mean": wide, "row": width, "p": p_value, "found": ""}


def _widest(number: int) -> Base:
    return lambda rows, pair: findings.ends(findings.tested(rows, pair), number)


def gap_table(part: pl.DataFrame, number: int) -> Table:
    """The concepts with the widest gaps in either direction, at most so many in each."""
    lines = _lines(part, _widest(number), ["average_precision"])
    words = metric_rows(part, "word_alignment").height > 0
    columns: list[Column] = [
        *_both(part, "", "average_precision", chapter.percent_cell),
        ("Published", lambda line: signed(line["raw"])),
        ("Matched", lambda line: Cell(signed(line["value"]), points_range(line), strong=line["found"])),
        ("p", p_cell),
        ("Found from", lambda line: points(line["detectable"])),
        *([("Words", lambda line: decimal(line["alignment"], "+.2f"))] if words else []),
    ]
    long, notes = number > FEW, () if lines else (_why_none(part),)
    title = "The widest gaps in either direction" if long else "Widest gaps"
    table = _table(part, lines, _left(part), columns, "gaps", title, notes=notes, long=long)
    return table._replace(caption=f"{table.caption} {WORDS if words else ''}{INTERVALS}")


def _why_none(part: pl.DataFrame) -> str:
    if any(findings.tested(rows, pair).height for _, rows in by_model(part) for pair in findings.pairs(rows)):
        return "Every concept that could be tested is recognised equally well in both groups: there is no gap."
    return "No concept is shown by five people of both groups: nothing could be tested."


def calibration_table(part: pl.DataFrame) -> Table:
    """How far confidence is off for both groups, for the concepts with the widest gaps."""

    def widest(rows: pl.DataFrame, pair: Pair) -> list[Result]:
        return findings.calibration_gaps(rows, pair).head(2 * FEW).to_dicts()

    gaps = {"ECE gap": "ece_gap", "Equal counts": "ece_adaptive_gap", "Brier gap": "brier_gap"}
    lines = _lines(part, widest, ["miscalibration", "ece"], gaps.values())
    columns = [
        *_both(part, "Off by, ", "miscalibration", _root_cell),
        ("p", lambda line: p_cell(line)._replace(strong=line["found"])),
        *_both(part, "ECE, ", "ece", chapter.percent_cell),
        *((head, _other(gap, points_cell)) for head, gap in gaps.items()),
    ]
    return _table(part, lines, _left(part), columns, "calibration", "Calibration: the widest gaps")


def _root_cell(row: Result | None) -> Cell:
    """A squared error as its root in points; "chance" if it is no larger than by chance."""
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    text = points(findings.root(row["value"])) if row["value"] > 0 else "chance"
    bounds = f"{points(findings.root(row['low']))}–{points(findings.root(row['high']))}" if has_interval(row) else ""
    return Cell(text, bounds)


SAME = {"ap_gap_same_area": "Same sizes", "ap_gap_same_companions": "Same companions"}
SAME |= {"ap_gap_same_brightness": "Same brightness", "ap_gap_same_sharpness": "Same sharpness"}


def cause_table(part: pl.DataFrame) -> Table:
    """For the widest gaps: how the objects of the groups differ, and the gap that remains at equal sizes."""

    def named(row: Result | None) -> Cell:
        return Cell(percent(row["value"]), row["note"]) if row else Cell(ABSENT)

    there = {name for name in ("area", "names", *SAME) if metric_rows(part, name).height}
    same = [name for name in SAME if name in there]
    lines = _lines(part, _widest(FEW), ["area", "instances"], [*same, "names"])
    boxes = [
        *_both(part, "Area, ", "area", lambda row: percent(row["value"] if row else None, 1)),
        *_both(part, "Boxes, ", "instances", lambda row: f"{row['value']:.1f}" if row else ABSENT),
    ]
    columns: list[Column] = [
        *(boxes if "area" in there else []),
        ("Gap", lambda line: signed(line["value"])),
        *((SAME[name], _other(name, points_cell)) for name in same),
        *([("Names", _other("names", named))] if "names" in there else []),
    ]
    return _table(part, lines, _left(part), columns, "causes", "Possible causes of the widest gaps", long=True)


def agreement_table(part: pl.DataFrame) -> Table:
    """Agreement of the gaps with other data sets and other models."""
    lines: list[Result] = []
    for model, rows in by_model(part):
        counts = metric_rows(rows, "agreement_count")
        for (other,), table in counts.group_by(["subset"], maintain_order=True):
            colours = {row["group"]: f"{row['value']:.0f}" for row in table.to_dicts()}
            lines.append({"model": model, "subset": other, "n": table["n"][0], **colours})
        same = metric_rows(rows, "model_agreement").to_dicts()
        lines += [{**row, "same": percent(row["value"])} for row in same]
    heads = {"Concepts": "n", "Green": "green", "Yellow": "yellow", "Red": "red", "Same sign": "same"}
    title, columns = "Agreement with other data sets and models", list(heads.items())
    lines = [dict.fromkeys(heads.values()) | line for line in lines]
    return _table(part, lines, [("Compared with", "subset")], columns, "agreement", title)


def image_table(part: pl.DataFrame) -> Table:
    """The ids of the images behind the widest gaps; never the images."""
    rows = metric_rows(part, "outranked").to_dicts()
    ids = {(row["model"], row["concept"], row["group"], row["subset"]): row["note"] for row in rows}
    columns: list[Column] = [
        ("Show it", "n"),
        ("Outranked", lambda row: percent(row["value"])),
        ("Overlooked", "note"),
        ("Mistaken", lambda row: ids.get((row["model"], row["concept"], row["group"], "mistaken"), ABSENT)),
    ]
    left: list[Column] = [("Concept", "concept"), ("Images", "group")]
    rows = [row for row in rows if row["subset"] == "overlooked"]
    return _table(part, rows, left, columns, "images", "Images behind the widest gaps, by id", long=True)


def disparity_planted(part: pl.DataFrame) -> Table | None:
    """Every planted gap and the measured one, for the reference models on drawings of their own world."""
    own = part.filter(pl.col("model").str.starts_with(REFERENCE) & (pl.col("dataset") == OBJECTS_NAME))
    if not findings.tested(own, PAIR).height:
        return None
    measured = {model: by_column(findings.tested(rows, PAIR), "concept") for model, rows in by_model(own)}
    return tabled(
        own,
        [rows[planted.item] for rows in measured.values() for planted in PLANTED_OBJECTS],
        [("Object", "concept")],
        [
            ("Planted", lambda row: signed(implied_gap(row["concept"]))),
            ("Found", lambda row: signed(row["raw"])),
            ("Planted, matched", lambda row: signed(implied_matched_gap(row["concept"]))),
            ("Found, matched", lambda row: Cell(signed(row["value"]), points_range(row), strong=row["found"])),
        ],
        title="Known truth against what the audit found",
        caption=CAPTIONS["planted"],
        notes=[f"{planted.item}: {planted.note}" for planted in PLANTED_OBJECTS],
    )


TOPICS = {
    "means": "On average",
    "gaps": "The widest gaps",
    "calibration": "Calibration",
    "agreement": "Agreement with word vectors, other data sets and models",
    "causes": "Possible causes of the gaps",
    "images": "Image ids behind the gaps",
}
QUESTIONS = chapter.read_questions(Path(__file__).with_name("questions.csv"))
SOURCES = {
    "coco": "Groups come from the words of annotators' captions",
    "visual-genome": "Groups come from the words that annotators gave to the people they saw",
}


def limitations(part: pl.DataFrame) -> Iterator[str]:
    """What these rows cannot say; each sentence only where it applies."""
    dataset = str(part["dataset"][0])
    if dataset in SOURCES:
        names = ", ".join(f"“{group}”" for group in findings.groups(part))
        used = f"only images in which exactly one of {names} is named are used"
        yield f"{SOURCES[dataset]}. They are perceived; {used}."
    if not drawn(dataset):
        yield "A concept that annotators did not mark counts as absent."
    gap = "A gap is a property of a model on these images."
    if metric_rows(part, "area_gap").height:
        gap += " Objects may be smaller, rarer or of another kind in the images of one group;"
        gap += " the table of causes shows what can be measured of that."
    yield gap
    if metric_rows(part, "ece").height:
        yield (
            "Expected calibration error is above 0 by chance, and larger for the smaller group; it also depends on how "
            "often a group shows the concept. Compare groups by miscalibration, which does not."
        )


CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=disparity_findings,
    tables=disparity_tables,
    figures=disparity_figures,
    planted=disparity_planted,
    limitations=limitations,
)
