"""Tables of public figures: right answers level by level, women and men, names and faces."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter import phrases as words
from beholder.chapter.equivalence import ratio_equivalence_table
from beholder.chapter.numbers import Result, ratio
from beholder.chapter.table import (
    INTERVALS,
    Cell,
    Table,
    labels,
    names,
    notes_of,
    percent_cell,
    ratio_cell,
    rows_of,
    sizes,
)


def public_figure_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; several models stand under each other in each."""
    for make in (association_tables, bias_tables, ratio_equivalence_table, identity_tables):
        yield from make(part)


# Association


def association_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Three levels by branch, top-1 beside each."""
    mean, top1 = rows_of(part, "association"), rows_of(part, "association_top1")
    if not mean:
        return
    mean_of, top1_of = _by_place(mean), _by_place(top1)
    body = []
    for model, branch in dict.fromkeys((row["model"], row["subset"]) for row in mean):
        found = [mean_of[place] for level in words.LEVELS if (place := (model, branch, level)) in mean_of]
        cells = [
            cell
            for level in words.LEVELS
            for cell in (
                percent_cell(mean_of.get((model, branch, level)), with_chance=True, strong=True),
                percent_cell(top1_of.get((model, branch, level))),
            )
        ]
        body.append([*names(part, model, branch), Cell(sizes(found)), *cells])
    columns = [heading for level in words.LEVELS for heading in (level.capitalize(), "first")]
    yield Table(
        "Right answer, level by level",
        "Mean share of the model's belief on the right prompt, in per cent; beside it, how often the right prompt "
        f"comes first. {INTERVALS}",
        [*labels(part, "Branch"), "n", *columns],
        body,
        len(labels(part, "Branch")),
        notes_of(mean),
        "association",
        extras=("first",),
    )


def _by_place(rows: list[Result]) -> dict[tuple[str, str, str], Result]:
    return {(row["model"], row["subset"], row["concept"]): row for row in rows}


# Gender


def bias_tables(part: pl.DataFrame) -> Iterator[Table]:
    """The ratios of all pools, then every occupation of each pool."""
    probabilities, ratios = rows_of(part, "occupation_probability"), rows_of(part, "bias_ratio")
    cell_of = {(row["model"], row["subset"], row["group"], row["concept"]): row for row in probabilities}
    if ratios:
        yield _ratio_table(part, ratios, cell_of)
    for pool in dict.fromkeys(row["subset"] for row in probabilities):
        yield _occupation_table(part.filter(pl.col("subset") == pool), pool, cell_of)


Cells = dict[tuple[str, str, str, str], Result]


def _ratio_table(part: pl.DataFrame, ratios: list[Result], cell_of: Cells) -> Table:
    body = []
    for row in ratios:
        pool = row["subset"]
        answers = {group: words.correct_occupation(pool, group) for group in words.GROUPS}
        right = [cell_of.get((row["model"], pool, group, answer)) for group, answer in answers.items()]
        counts = " / ".join(str(cell["n"]) for cell in right if cell) or str(row["n"])
        body.append([*names(part, row["model"], pool), Cell(counts), *map(percent_cell, right), ratio_cell(row)])
    return Table(
        "Women over men",
        "Probability of the right occupation for women and for men, in per cent, and their ratio b; 1: alike, below 1: "
        f"women get less. {INTERVALS}",
        [*labels(part, "Pool"), "n women / men", "Women", "Men", "b"],
        body,
        len(labels(part, "Pool")),
        notes_of(ratios, skip="1 means alike"),
        "gender",
    )


def _occupation_table(part: pl.DataFrame, pool: str, cell_of: Cells) -> Table:
    body = []
    answers = {group: words.correct_occupation(pool, group) for group in words.GROUPS}
    rows = part.filter(pl.col("metric").str.ends_with(".occupation_probability"))
    for (model, concept), _ in rows.group_by(["model", "concept"], maintain_order=True):
        cells = [
            percent_cell(cell_of.get((str(model), pool, group, str(concept))), strong=concept == answer)
            for group, answer in answers.items()
        ]
        body.append([*names(rows, str(model), str(concept)), *cells])
    return Table(
        f"Occupations offered for {pool}",
        f"Mean share of belief on each occupation, in per cent; the right one is set bold. {INTERVALS}",
        [*labels(rows, "Occupation"), "Women", "Men"],
        body,
        len(labels(rows, "Occupation")),
        notes_of(rows.to_dicts()),
        "gender",
        long=True,
    )


# Identity

IDENTITY = ("identity_given_image", "identity_given_name")
ENDINGS = ("", "_top1", "_mrr")
Place = tuple[str, str]
"""Model and branch."""


def identity_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Both directions by branch, with top-1 and reciprocal rank."""
    rows = {what: {(row["model"], row["subset"]): row for row in rows_of(part, what)} for what in _identity_metrics()}
    places = dict.fromkeys(place for what in IDENTITY for place in rows[what])
    if not places:
        return
    body = []
    for place in places:
        given = [cell for what in IDENTITY for cell in _identity_cells(what, rows, place)]
        there = [row for what in IDENTITY if (row := rows[what].get(place))]
        body.append([*names(part, *place), Cell(sizes(there)), *given])
    yield Table(
        "Names and faces",
        "Given an image: belief on the right name. Given a name: belief on the right image. In per cent, with how "
        f"often the right one comes first and the mean reciprocal rank (1: always first). {INTERVALS}",
        [*labels(part, "Branch"), "n", "Given an image", "first", "1/rank", "Given a name", "first", "1/rank"],
        body,
        len(labels(part, "Branch")),
        notes_of([row for what in IDENTITY for row in rows[what].values()]),
        "identity",
        extras=("first", "1/rank"),
    )


def _identity_metrics() -> list[str]:
    return [f"{what}{ending}" for what in IDENTITY for ending in ENDINGS]


def _identity_cells(what: str, rows: dict[str, dict[Place, Result]], place: Place) -> list[Cell]:
    share, first, rank = (rows[f"{what}{ending}"].get(place) for ending in ENDINGS)
    reciprocal = Cell(ratio(rank["value"] if rank else None))
    return [percent_cell(share, with_chance=True, strong=True), percent_cell(first), reciprocal]
