"""Disparity's tables: means, gaps, calibration, agreement, causes, image ids. All concepts are in results.csv."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import INTERVALS, Cell, Table, labels, names, percent_cell
from beholder.chapter.numbers import (
    ABSENT,
    MINUS,
    Result,
    has_interval,
    percent,
    points,
    points_range,
    row_p_value,
    signed,
)
from beholder.chapter.queries import by_model, metric_rows, one_row
from beholder.comparison.family import DIFFERENCE
from beholder.studies.disparity import phrases, queries
from beholder.studies.disparity.queries import Pair

FEW, TOP = 5, 20
"""How many gaps in either direction the short and the long table show."""
WORDS = "Words: how much nearer the concept is to the first group's words, cosine. "


def disparity_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; several models follow one another in each."""
    if not queries.pairs(part):
        return
    yield mean_table(part)
    yield gap_table(part, FEW)
    yield gap_table(part, TOP)
    if metric_rows(part, "ece").height:
        yield calibration_table(part)
    if metric_rows(part, "agreement_count").height or metric_rows(part, "model_agreement").height:
        yield agreement_table(part)
    if metric_rows(part, "area_gap").height:
        yield cause_table(part)
    if metric_rows(part, "outranked").height:
        yield image_table(part)


def _model_pairs(part: pl.DataFrame) -> Iterator[tuple[str, Pair, pl.DataFrame]]:
    """Every model and pair, with the model's rows."""
    for model, rows in by_model(part):
        for pair in queries.pairs(rows):
            yield model, pair, rows


def _single(part: pl.DataFrame) -> bool:
    return len(queries.pairs(part)) == 1


def _concept_labels(part: pl.DataFrame) -> list[str]:
    """The headings of a table of concepts; with a column for the pair, if there are several."""
    return labels(part, *([] if _single(part) else ["Pair"]), "Concept")


def _concept_names(part: pl.DataFrame, model: str, pair: Pair, concept: str) -> list[Cell]:
    """The cells under these headings."""
    return names(part, model, *([] if _single(part) else [phrases.less(pair)]), concept)


def _side_labels(part: pl.DataFrame) -> tuple[str, str]:
    """The headings of the two sides: the groups, if there are two."""
    return queries.pairs(part)[0].names if _single(part) else ("first", "second")


def mean_table(part: pl.DataFrame) -> Table:
    """Mean average precision of each group, the mean matched gap, and how many gaps were found."""
    body = []
    for model, rows in by_model(part):
        for group in queries.groups(rows):
            row = one_row(rows, "mean_average_precision", group=group)
            body.append([*names(part, model, group), percent_cell(row, strong=True), _number(row), Cell(""), Cell("")])
        for pair in queries.pairs(rows):
            compared = queries.of_pair(rows, pair)
            published, width, chance, found = (
                one_row(compared, metric)
                for metric in ("mean_ap_gap", "gap_spread", "gap_spread_expected", "gaps_shown")
            )
            matched = queries.decided(compared, "mean_ap_gap_matched")
            count = f"{int(found['value'])} of {found['n']}" if found else ABSENT
            less = phrases.less(pair)
            cells = [_points_cell(published), _number(published), Cell(""), Cell("")]
            body.append([*names(part, model, f"{less}, as published"), *cells])
            cells = [_points_cell(matched), _number(matched), _p_cell(matched), Cell(count)]
            body.append([*names(part, model, less), *cells])
            body.append([*names(part, model, f"{less}, mean width"), *_width_cells(width, chance)])
    caption = (
        f"Mean average precision of each group; differences in points. {INTERVALS} As published: the difference of "
        "these means. Without that: the mean of the gaps at matched prevalence. Mean width: how far matched gaps "
        "are from 0, and in small print with shuffled labels. p: from shuffled labels. Bold: a difference was found. "
        "Gaps found: concepts with a difference, all tested together."
    )
    columns = labels(part, "Images")
    header = [*columns, "Mean", "Concepts", "p", "Gaps found"]
    return Table("On average over concepts", caption, header, body, len(columns), topic="means")


def _width_cells(width: Result | None, chance: Result | None) -> list[Cell]:
    """How wide gaps are on average, with the same for shuffled labels."""
    if width is None or chance is None:
        return [Cell(ABSENT), _number(width), Cell(ABSENT), Cell("")]
    detail = f"shuffled: {points(chance['low'])}–{points(chance['high'])}"
    cell = Cell(points(width["value"]), detail, strong=width["verdict"] == DIFFERENCE)
    return [cell, _number(width), _p_cell(width), Cell("")]


def _p_cell(row: Result | None) -> Cell:
    return Cell(row_p_value(row) if row else ABSENT)


def _number(row: Result | None) -> Cell:
    return Cell(str(row["n"]) if row else ABSENT)


def _points_cell(row: Result | None) -> Cell:
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    return Cell(signed(row["value"]), points_range(row), strong=row["verdict"] == DIFFERENCE)


def _why_none(part: pl.DataFrame) -> str:
    """Why the table of gaps is empty."""
    if any(queries.tested(rows, pair).height for _, pair, rows in _model_pairs(part)):
        return "Every concept that could be tested is recognised equally well in both groups: there is no gap."
    return "No concept is shown by five people of both groups: nothing could be tested."


def gap_table(part: pl.DataFrame, number: int) -> Table:
    """The widest gaps in either direction."""
    body, words = [], metric_rows(part, "word_alignment").height > 0
    for model, pair, rows in _model_pairs(part):
        sides = queries.sides(rows, "average_precision", pair)
        for row in queries.ends(queries.tested(rows, pair), number):
            both = [percent_cell(side.get(row["concept"])) for side in sides]
            cells = _gap_cells(row)[: None if words else -1]
            body.append([*_concept_names(part, model, pair, row["concept"]), *both, *cells])
    long, columns = number > FEW, _concept_labels(part)
    caption = (
        "Average precision of each group, and the gap in points. Published: as in the study. Matched (read this one): "
        "at the same prevalence for both groups, less the gap that few images alone produce. Its interval and p hold "
        "for all concepts at once; bold: a difference was found. Found from: the smallest gap that a test of this "
        f"concept alone would find in four of five data sets. {WORDS if words else ''}{INTERVALS}"
    )
    header = [*columns, *_side_labels(part), "Published", "Matched", "p", "Found from", *(["Words"] if words else [])]
    title = "The widest gaps in either direction" if long else "Widest gaps"
    notes = () if body else (_why_none(part),)
    return Table(title, caption, header, body, len(columns), notes, "gaps", long=long)


def _gap_cells(row: Result) -> list[Cell]:
    words = row["alignment"]
    return [
        Cell(signed(row["raw"])),
        Cell(signed(row["value"]), points_range(row), strong=row["found"]),
        Cell(row_p_value(row)),
        Cell(points(row["detectable"])),
        Cell(ABSENT if words is None else f"{words:+.2f}".replace("-", MINUS)),
    ]


def calibration_table(part: pl.DataFrame) -> Table:
    """How far confidence is off for both groups, for the concepts with the widest gaps."""
    body = []
    for model, pair, rows in _model_pairs(part):
        roots, errors = (queries.sides(rows, metric, pair) for metric in ("miscalibration", "ece"))
        compared = queries.of_pair(rows, pair)
        published = [queries.by_concept(compared, f"{kind}_gap") for kind in ("ece", "ece_adaptive", "brier")]
        for row in queries.calibration_gaps(rows, pair).head(2 * FEW).to_dicts():
            concept = row["concept"]
            cells = [
                *(_root_cell(side.get(concept), strong=row["found"]) for side in roots),
                _p_cell(row),
                *(percent_cell(side.get(concept)) for side in errors),
                *(_points_cell(each.get(concept)) for each in published),
            ]
            body.append([*_concept_names(part, model, pair, concept), *cells])
    first, second = _side_labels(part)
    header = [f"Off by, {first}", second, "p", f"ECE, {first}", second, "ECE gap", "Equal counts", "Brier gap"]
    columns = _concept_labels(part)
    caption = (
        "Off by (read this one): root of the mean squared distance between confidence and what the images show, in "
        "points, at the same prevalence for all groups, less what chance adds; p: is it the same for both, for all "
        "concepts at once; bold: a difference was found. ECE: expected "
        "calibration error in ten equal bins, as published, and its gap (positive: worse for the first group); equal "
        "counts: the gap in bins of equally many images. These and the gap of the Brier score depend on the groups' "
        f"sizes and prevalences. {INTERVALS}"
    )
    title = "Calibration: the widest gaps"
    return Table(title, caption, [*columns, *header], body, len(columns), topic="calibration")


def _root_cell(row: Result | None, *, strong: bool) -> Cell:
    """A squared error as its root in points; "chance" if it is no larger than by chance."""
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    root = points(phrases.root(row["value"])) if row["value"] > 0 else "chance"
    bounds = phrases.root_range(row) if has_interval(row) else ""
    return Cell(root, bounds, strong=strong)


def cause_table(part: pl.DataFrame) -> Table:
    """For the widest gaps: how the objects of the groups differ, and the gap that remains at equal sizes."""
    body = []
    for model, pair, rows in _model_pairs(part):
        areas, counts = (queries.sides(rows, metric, pair) for metric in ("area", "instances"))
        compared = queries.of_pair(rows, pair)
        left, named = (queries.by_concept(compared, metric) for metric in ("ap_gap_same_area", "names"))
        for row in queries.ends(queries.tested(rows, pair), FEW):
            concept = row["concept"]
            other = named.get(concept)
            sizes = [Cell(percent(area[concept]["value"] if concept in area else None, 1)) for area in areas]
            number = [Cell(f"{count[concept]['value']:.1f}" if concept in count else ABSENT) for count in counts]
            now = [Cell(signed(row["value"])), _points_cell(left.get(concept))]
            words = Cell(percent(other["value"]), other["note"]) if other else Cell(ABSENT)
            body.append([*_concept_names(part, model, pair, concept), *sizes, *number, *now, words])
    caption = (
        "Area: share of the image that the largest box covers. Boxes: how many. Both are means over the images of each "
        "group that show the concept: described, not tested. Gap: matched, in points. Same sizes: the gap that remains "
        "when sizes are distributed alike. Names: how differently annotators name it."
    )
    columns, (first, second) = _concept_labels(part), _side_labels(part)
    header = [f"Area, {first}", second, f"Boxes, {first}", second, "Gap", "Same sizes", "Names"]
    title = "Possible causes of the widest gaps"
    return Table(title, caption, [*columns, *header], body, len(columns), topic="causes", long=True)


def agreement_table(part: pl.DataFrame) -> Table:
    """Agreement of the gaps with other data sets and other models."""
    body = []
    for model, rows in by_model(part):
        counts = metric_rows(rows, "agreement_count")
        for (other,), table in counts.group_by(["subset"], maintain_order=True):
            number = {row["group"]: f"{row['value']:.0f}" for row in table.to_dicts()}
            cells = [Cell(number.get(colour, ABSENT)) for colour in ("green", "yellow", "red")]
            body.append([*names(part, model, str(other)), Cell(str(table["n"][0])), *cells, Cell(ABSENT)])
        for row in metric_rows(rows, "model_agreement").to_dicts():
            empty = [Cell(ABSENT)] * 3
            share = Cell(percent(row["value"]))
            body.append([*names(part, model, row["subset"]), Cell(str(row["n"])), *empty, share])
    caption = (
        "Green: published gaps wider than five points in the same direction; red: in opposite directions; yellow: all "
        "others. Same sign: gaps of the same sign in another model, 50 % by chance."
    )
    columns, title = labels(part, "Compared with"), "Agreement with other data sets and models"
    header = [*columns, "Concepts", "Green", "Yellow", "Red", "Same sign"]
    return Table(title, caption, header, body, len(columns), topic="agreement")


def image_table(part: pl.DataFrame) -> Table:
    """The ids of the images behind the widest gaps; never the images."""
    body = []
    for model, rows in by_model(part):
        table = metric_rows(rows, "outranked")
        ids = {(row["concept"], row["group"], row["subset"]): row["note"] for row in table.to_dicts()}
        for row in table.filter(pl.col("subset") == "overlooked").to_dicts():
            key = row["concept"], row["group"]
            lists = [Cell(ids.get((*key, kind), ABSENT)) for kind in ("overlooked", "mistaken")]
            body.append([*names(part, model, *key), Cell(str(row["n"])), Cell(percent(row["value"])), *lists])
    caption = (
        "Outranked: how often an image without the concept scores above one with it (0 %: never, 50 %: at random). "
        "Overlooked: images that show it, lowest score first. Mistaken: images that do not, highest score first."
    )
    columns, title = labels(part, "Concept", "Images"), "Images behind the widest gaps, by id"
    header = [*columns, "Show it", "Outranked", "Overlooked", "Mistaken"]
    return Table(title, caption, header, body, len(columns), topic="images", long=True)
