"""Planted beside recovered for GRAS: the trait associations that the generative reference model was taught."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from beholder.chapter.numbers import Result
from beholder.chapter.table import Cell, Table, labels, names
from beholder.studies.gras import phrases as said
from beholder.studies.gras import queries as reading
from beholder.studies.public_figures.planted import REFERENCE


class Recovered(NamedTuple):
    """One trait's gap by one attribute: what was planted, what was measured, and whether it points the same way."""

    row: Result
    planted: float
    """The planted gap; 0 where nothing was planted."""
    same_way: bool
    """Whether the group measured higher is the one planted higher."""


def recovered(part: pl.DataFrame) -> list[Recovered]:
    """Every planted trait in every attribute that was measured; nothing for a model that was taught nothing."""
    taught = pl.col("model").str.starts_with(REFERENCE) & pl.col("dataset").str.starts_with("glasshouse")
    try:
        from beholder.glasshouse.planted_traits import ATTRIBUTES, PLANTED_TRAITS, group_means, implied
    except ImportError:
        return []
    traits = {planted.trait for planted in PLANTED_TRAITS}
    known = pl.col("concept").is_in(traits) & pl.col("subset").is_in(ATTRIBUTES)
    found = []
    for row in reading.gaps(part.filter(taught)).filter(known).to_dicts():
        means = group_means(row["subset"], row["concept"])
        higher, _, lower = row["group"].partition(" over ")
        planted = implied("gras.largest_gap", row["subset"], "", row["concept"])
        found.append(Recovered(row, planted, means.get(higher, 0.0) > means.get(lower, 0.0)))
    return found


def gras_planted(part: pl.DataFrame) -> Table | None:
    """Every planted association with what was measured; the rest is counted in a note."""
    found = recovered(part)
    there, rest = [each for each in found if each.planted > 0], [each for each in found if not each.planted]
    if not there:
        return None
    shown = part.filter(pl.col("model").str.starts_with(REFERENCE))
    ranked = sorted(there, key=lambda each: (each.row["model"], each.row["subset"], -each.planted))
    return Table(
        "Planted beside recovered",
        "The gap that was planted between the ends of an attribute, and the widest gap that this audit measures, in "
        "points of P(Yes); small print: 95 % interval over other drawn people. A trained model comes near what it was "
        "taught, not exactly to it.",
        [*labels(shown, "Attribute", "Trait"), "n", "Planted", "Recovered", "Between", "Same way"],
        [
            [*names(shown, each.row["model"], said.attribute(each.row["subset"]), each.row["concept"]), *_cells(each)]
            for each in ranked
        ],
        len(labels(shown, "Attribute", "Trait")),
        (f"Where nothing was planted, {false_calls(rest)} of {len(rest)} gaps are called after correction.",),
        "planted",
    )


def false_calls(rest: list[Recovered]) -> int:
    """Gaps that are called although nothing was planted."""
    return sum(each.row["shown"] for each in rest)


def _cells(each: Recovered) -> list[Cell]:
    row = each.row
    return [
        Cell(str(row["n"])),
        Cell(said.points(each.planted)),
        Cell(said.points(row["value"]), said.points_range(row), strong=row["shown"]),
        Cell(said.between(row)),
        Cell("yes" if each.same_way else "no"),
    ]
