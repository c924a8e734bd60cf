"""Disparity's tables: groups, gaps, calibration, causes, agreement, image ids. All concepts are in results.csv."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.numbers import ABSENT, Result, excludes, has_interval, percent
from beholder.chapter.table import INTERVALS, Cell, Table, labels, names, percent_cell
from beholder.studies.disparity import phrases as said
from beholder.studies.disparity import queries as reading

FEW, TOP = 5, 20
"""Gaps in either direction in the short table, and in the long one."""
GAP_HEADER = ("Published", "Matched", "p", "Found from", "Words")
PRINTED_IDS = "image ids: "


def disparity_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; several models stand under each other."""
    if not reading.pairs(part):
        return
    yield mean_table(part)
    yield gap_table(part, FEW)
    yield gap_table(part, TOP)
    if reading.rows(part, "ece").height:
        yield calibration_table(part)
    if reading.rows(part, "agreement_count").height or reading.rows(part, "model_agreement").height:
        yield agreement_table(part)
    if reading.rows(part, "area_gap").height:
        yield cause_table(part)
    if reading.rows(part, "outranked").height:
        yield image_table(part)


def _places(part: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Model by model, pair by pair."""
    for model, mine in reading.models(part):
        for pair in reading.pairs(mine):
            yield model, pair, mine


def _single(part: pl.DataFrame) -> bool:
    return len(reading.pairs(part)) == 1


def _pair_label(part: pl.DataFrame) -> list[str]:
    """A column for the pair only where there are several."""
    return [] if _single(part) else ["Pair"]


def _pair_name(part: pl.DataFrame, pair: str) -> list[str]:
    return [] if _single(part) else [pair]


def _sides(part: pl.DataFrame) -> list[str]:
    """What the columns of the two sides are called: by their groups where there are two."""
    return list(reading.sides(reading.pairs(part)[0])) if _single(part) else ["first", "second"]


def mean_table(part: pl.DataFrame) -> Table:
    """Mean average precision of each group, and how wide gaps are."""
    body = []
    for model, mine in reading.models(part):
        for group in reading.groups(mine):
            row = reading.one(mine, "mean_average_precision", group=group)
            body.append([*names(part, model, group), percent_cell(row, strong=True), _number(row), Cell("")])
        for pair in reading.pairs(mine):
            row = reading.one(mine, "mean_ap_gap", group=pair)
            shown = reading.one(mine, "gaps_shown", group=pair)
            count = f"{int(shown['value'])} of {shown['n']}" if shown else ABSENT
            body.append([*names(part, model, pair), _points_cell(row), _number(row), Cell(count)])
    return Table(
        "On average over concepts",
        f"Mean average precision of each group; differences in points. {INTERVALS} Gaps shown: concepts whose gap at "
        "matched prevalence has p ≤ 0.05 after correction.",
        [*labels(part, "Pictures"), "Mean", "Concepts", "Gaps shown"],
        body,
        len(labels(part, "Pictures")),
        (),
        "means",
    )


def _number(row: Result | None) -> Cell:
    return Cell(str(row["n"]) if row else ABSENT)


def _points_cell(row: Result | None) -> Cell:
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    return Cell(said.signed(row["value"]), said.points_range(row), strong=excludes(row, 0.0))


def _why_none(part: pl.DataFrame) -> str:
    """Nothing was tested, or all that was tested is ranked alike in both."""
    tested = any(reading.tested(mine, pair).height for _, pair, mine in _places(part))
    if tested:
        return "Every concept that could be tested is recognised equally well in both: no gap to show."
    return "No concept is shown by five images of both: nothing could be tested."


def gap_table(part: pl.DataFrame, number: int) -> Table:
    """The widest gaps in either direction."""
    body = []
    for model, pair, mine in _places(part):
        sides = [reading.by_concept(mine, "average_precision", side) for side in reading.sides(pair)]
        for row in reading.ends(reading.tested(mine, pair), number):
            both = [percent_cell(side.get(row["concept"])) for side in sides]
            body.append([*names(part, model, *_pair_name(part, pair), row["concept"]), *both, *_gap_cells(row)])
    long = number > FEW
    return Table(
        "The widest gaps in either direction" if long else "Widest gaps",
        "Average precision of each, and the gap in points: as published, and at one prevalence for both, less what few "
        "images give by themselves (read this one). p: labels shuffled, after correction. Found from: the smallest gap "
        f"that such counts would show. Words: how much nearer to the first group's words, cosine. {INTERVALS}",
        [*labels(part, *_pair_label(part), "Concept"), *_sides(part), *GAP_HEADER],
        body,
        len(labels(part, *_pair_label(part), "Concept")),
        () if body else (_why_none(part),),
        "gaps",
        long=long,
    )


def _gap_cells(row: Result) -> list[Cell]:
    words = row["alignment"]
    return [
        Cell(said.signed(row["raw"])),
        Cell(said.signed(row["value"]), said.points_range(row), strong=bool(row["shown"])),
        Cell(said.p_value(row["p_value"])),
        Cell(said.points(row["detectable"])),
        Cell(ABSENT if words is None else f"{words:+.2f}".replace("-", said.MINUS)),
    ]


def calibration_table(part: pl.DataFrame) -> Table:
    """How far confidence is off for both, for the concepts whose gap is widest."""
    body = []
    for model, pair, mine in _places(part):
        roots, errors = (
            [reading.by_concept(mine, what, side) for side in reading.sides(pair)] for what in ("miscalibration", "ece")
        )
        published = [reading.by_concept(mine, what, pair) for what in ("ece_gap", "ece_adaptive_gap", "brier_gap")]
        for row in reading.calibration_gaps(mine, pair).head(2 * FEW).to_dicts():
            concept, shown = row["concept"], excludes(row, 0.0)
            cells = [
                *(_root_cell(side.get(concept), strong=shown) for side in roots),
                *(percent_cell(side.get(concept)) for side in errors),
                *(_points_cell(each.get(concept))._replace(strong=False) for each in published),
            ]
            body.append([*names(part, model, *_pair_name(part, pair), concept), *cells])
    first, second = _sides(part)
    header = [f"Off by, {first}", second, f"ECE, {first}", second, "ECE gap", "Equal counts", "Brier gap"]
    return Table(
        "Calibration: the widest gaps",
        "Off by: root of the mean squared distance between confidence and what is there, in points, less what chance "
        "adds (read this one; bold where the groups' intervals of it set them apart). Beside it expected calibration "
        "error in ten equal bins, as published, with its gap (positive: worse for the first), in bins of equally many "
        f"images, and the gap of the Brier score: these follow the groups' sizes and prevalences. {INTERVALS}",
        [*labels(part, *_pair_label(part), "Concept"), *header],
        body,
        len(labels(part, *_pair_label(part), "Concept")),
        (),
        "calibration",
    )


def _root_cell(row: Result | None, *, strong: bool) -> Cell:
    """A squared error as its root in points; one that chance alone would give is said to be that."""
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    said_root = said.points(said.root(row["value"])) if row["value"] > 0 else "chance"
    bounds = said.root_range(row) if has_interval(row) else ""
    return Cell(said_root, bounds, strong=strong)


def cause_table(part: pl.DataFrame) -> Table:
    """Beside the widest gaps: how the groups' things differ, and what is left at equal sizes."""
    body = []
    for model, pair, mine in _places(part):
        areas = [reading.by_concept(mine, "area", side) for side in reading.sides(pair)]
        counts = [reading.by_concept(mine, "instances", side) for side in reading.sides(pair)]
        gaps, left = (reading.by_concept(mine, what, pair) for what in ("area_gap", "ap_gap_same_area"))
        called = reading.by_concept(mine, "names", pair)
        for row in reading.ends(reading.tested(mine, pair), FEW):
            concept = row["concept"]
            size, other = gaps.get(concept), called.get(concept)
            sizes = [Cell(percent(area[concept]["value"] if concept in area else None, 1)) for area in areas]
            number = [Cell(f"{count[concept]['value']:.1f}" if concept in count else ABSENT) for count in counts]
            p_value = Cell(said.p_value(size["p_value"] if size else None))
            now = [Cell(said.signed(row["value"])), _points_cell(left.get(concept))]
            words = Cell(percent(other["value"]), other["note"]) if other else Cell(ABSENT)
            body.append([*names(part, model, *_pair_name(part, pair), concept), *sizes, p_value, *number, *now, words])
    return Table(
        "What may lie behind the widest gaps",
        "Area: share of the picture that the largest box covers; boxes: how many; both as mean over pictures that show "
        "the concept, first and second group; p: do areas differ, after correction. Gap: matched, in points, and what "
        f"is left of it when sizes are spread alike. Names: how differently annotators call it. {INTERVALS}",
        [*labels(part, *_pair_label(part), "Concept"), *_cause_header(part)],
        body,
        len(labels(part, *_pair_label(part), "Concept")),
        (),
        "causes",
        long=True,
    )


def _cause_header(part: pl.DataFrame) -> list[str]:
    first, second = _sides(part)
    measured = [f"Area, {first}", second, "p", f"Boxes, {first}", second]
    return [*measured, "Gap", "Same sizes", "Names"]


def agreement_table(part: pl.DataFrame) -> Table:
    """Other data sets and other models."""
    body = []
    for model, mine in reading.models(part):
        counts = reading.rows(mine, "agreement_count")
        for (other,), found in counts.group_by(["subset"], maintain_order=True):
            number = {row["group"]: f"{row['value']:.0f}" for row in found.to_dicts()}
            cells = [Cell(number.get(colour, ABSENT)) for colour in ("green", "yellow", "red")]
            body.append([*names(part, model, str(other)), Cell(str(found["n"][0])), *cells, Cell(ABSENT)])
        for row in reading.rows(mine, "model_agreement").to_dicts():
            empty = [Cell(ABSENT)] * 3
            body.append([*names(part, model, row["subset"]), Cell(str(row["n"])), *empty, percent_cell(row)])
    return Table(
        "Beside other data sets and models",
        "Green: published gaps wider than five points that point one way; red: opposite ways; yellow: the rest. Same "
        f"way: gaps of one sign in another model, 50 % by chance. {INTERVALS}",
        [*labels(part, "Beside"), "Concepts", "Green", "Yellow", "Red", "Same way"],
        body,
        len(labels(part, "Beside")),
        (),
        "agreement",
    )


def image_table(part: pl.DataFrame) -> Table:
    """The ids of the images behind the widest gaps; never the images."""
    body = []
    for model, mine in reading.models(part):
        table = reading.rows(mine, "outranked")
        ids = {(r["concept"], r["group"], r["subset"]): r["note"].removeprefix(PRINTED_IDS) for r in table.to_dicts()}
        for row in table.filter(pl.col("subset") == "overlooked").to_dicts():
            place = row["concept"], row["group"]
            lists = [Cell(ids.get((*place, kind), ABSENT)) for kind in ("overlooked", "mistaken")]
            body.append([*names(part, model, *place), Cell(str(row["n"])), Cell(percent(row["value"])), *lists])
    return Table(
        "Images behind the widest gaps, by id",
        "Outranked: how often an image without the concept scores above one with it (0 % never, 50 % at random). "
        "Overlooked: images that show it, lowest score first. Mistaken: images that do not, highest score first.",
        [*labels(part, "Concept", "Pictures"), "Show it", "Outranked", "Overlooked", "Mistaken"],
        body,
        len(labels(part, "Concept", "Pictures")),
        (),
        "images",
        long=True,
    )
