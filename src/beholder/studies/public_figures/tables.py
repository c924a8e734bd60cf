"""Tables of public figures: right answers by level, women and men, names and faces."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

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
from beholder.studies.public_figures.measures import GROUPS, LEVELS
from beholder.studies.public_figures.phrases import correct_occupation


def public_figure_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; each has the rows of all models."""
    for make in (association_tables, bias_tables, ratio_equivalence_table, identity_tables):
        yield from make(part)


# Association


def association_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Three levels by branch, each with its top-1."""
    mean, top1 = rows_of(part, "association"), rows_of(part, "association_top1")
    if not mean:
        return
    mean_of, top1_of = _by_level(mean), _by_level(top1)
    body = []
    for model, branch in dict.fromkeys((row["model"], row["subset"]) for row in mean):
        measured = [mean_of[key] for level in LEVELS if (key := (model, branch, level)) in mean_of]
        cells = [
            cell
            for level in LEVELS
            for cell in (
                percent_cell(mean_of.get((model, branch, level)), with_chance=True, strong=True),
                percent_cell(top1_of.get((model, branch, level))),
            )
        ]
        body.append([*names(part, model, branch), Cell(sizes(measured)), *cells])
    columns = [heading for level in LEVELS for heading in (level.capitalize(), "first")]
    yield Table(
        "Right answer, level by level",
        "Mean share of the model's belief on the right prompt, in per cent, and how often the right prompt comes "
        f"first. {INTERVALS}",
        [*labels(part, "Branch"), "n", *columns],
        body,
        len(labels(part, "Branch")),
        notes_of(mean),
        "association",
        extras=("first",),
    )


def _by_level(rows: list[Result]) -> dict[tuple[str, str, str], Result]:
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
        answers = {group: correct_occupation(pool, group) for group in GROUPS}
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
        notes_of([row for row in ratios if row["low"] is None]),
        "gender",
    )


def _occupation_table(part: pl.DataFrame, pool: str, cell_of: Cells) -> Table:
    body = []
    answers = {group: correct_occupation(pool, group) for group in GROUPS}
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
ByBranch = dict[tuple[str, str], Result]
"""Rows of one metric by model and branch."""


def identity_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Both directions by branch, with top-1 and reciprocal rank."""
    metrics = [f"{metric}{ending}" for metric in IDENTITY for ending in ENDINGS]
    rows = {metric: {(row["model"], row["subset"]): row for row in rows_of(part, metric)} for metric in metrics}
    keys = dict.fromkeys(key for metric in IDENTITY for key in rows[metric])
    if not keys:
        return
    body = []
    for key in keys:
        cells = [cell for metric in IDENTITY for cell in _identity_cells(metric, rows, key)]
        measured = [row for metric in IDENTITY if (row := rows[metric].get(key))]
        body.append([*names(part, *key), Cell(sizes(measured)), *cells])
    yield Table(
        "Names and faces",
        "Given an image: belief on the right name. Given a name: belief on the right image. In per cent, with how "
        f"often the right one comes first and the mean reciprocal rank (1: always first). {INTERVALS}",
        [*labels(part, "Branch"), "n", "Given an image", "first", "1/rank", "Given a name", "first", "1/rank"],
        body,
        len(labels(part, "Branch")),
        notes_of([row for metric in IDENTITY for row in rows[metric].values()]),
        "identity",
        extras=("first", "1/rank"),
    )


def _identity_cells(metric: str, rows: dict[str, ByBranch], key: tuple[str, str]) -> list[Cell]:
    share, first, rank = (rows[f"{metric}{ending}"].get(key) for ending in ENDINGS)
    reciprocal = Cell(ratio(rank["value"] if rank else None))
    return [percent_cell(share, with_chance=True, strong=True), percent_cell(first), reciprocal]
