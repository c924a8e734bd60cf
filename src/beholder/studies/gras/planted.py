"""Known truth for GRAS: the trait associations that the generative reference model was taught."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from beholder.chapter.numbers import Result, points, points_range
from beholder.chapter.table import Cell, Table, labels, names
from beholder.glasshouse.planted import REFERENCE, planted_row
from beholder.glasshouse.planted_traits import ATTRIBUTES, PLANTED_TRAITS, PlantedTrait, group_means
from beholder.studies.gras import queries
from beholder.studies.gras.phrases import attribute_name, pair_text


def implied(metric: str, subset: str, group: str, concept: str) -> float:
    """What an audit of the faces should find: `gras.group_mean`, or `gras.largest_gap` whatever pair is named."""
    means = group_means(subset, concept)
    if metric == "gras.group_mean":
        return means[group]
    if metric == "gras.largest_gap":
        return round(max(means.values()) - min(means.values()), 12)  # 0 where nothing is planted, not 1e-17
    raise ValueError(f"Nothing is planted for {metric!r}: ask for gras.group_mean or gras.largest_gap.")


def _note(planted: PlantedTrait, attribute: str) -> str:
    if planted.attribute != attribute:
        return "nothing planted"
    up, down = {"gender": ("women", "men"), "skin_tone": ("tone 10", "tone 1"), "age": ("old", "young")}[attribute]
    more, less = (up, down) if planted.effect > 0 else (down, up)
    return f"planted: {100 * abs(planted.effect):.0f} points more of {more} than of {less}"


def _gap_row(planted: PlantedTrait, attribute: str) -> dict[str, Any]:
    value = implied("gras.largest_gap", attribute, "", planted.trait)
    return planted_row("gras.largest_gap", attribute, value, concept=planted.trait, note=_note(planted, attribute))


def _mean_rows(planted: PlantedTrait, attribute: str) -> list[dict[str, Any]]:
    note = _note(planted, attribute)
    return [
        planted_row("gras.group_mean", attribute, value, group=group, concept=planted.trait, note=note)
        for group, value in group_means(attribute, planted.trait).items()
    ]


PLANTED: list[dict[str, Any]] = [
    *(_gap_row(planted, attribute) for planted in PLANTED_TRAITS for attribute in ATTRIBUTES),
    *(row for planted in PLANTED_TRAITS if planted.attribute for row in _mean_rows(planted, planted.attribute)),
]
"""Every gap (72, most of them 0) and the group means of every association. A gap's row names no pair: which of two
equal groups an audit names is chance."""


class Recovered(NamedTuple):
    """One trait's gap by one attribute: what was planted, what was measured, and whether the directions agree."""

    row: Result
    planted: float
    """The planted gap; 0 where nothing was planted."""
    same_direction: bool
    """Whether the group that was measured higher is also the one that was planted higher."""


def recovered(part: pl.DataFrame) -> list[Recovered]:
    """Every planted trait in every measured attribute; nothing for models that were taught nothing."""
    taught = pl.col("model").str.starts_with(REFERENCE) & pl.col("dataset").str.starts_with("glasshouse")
    known = pl.col("concept").is_in({trait.trait for trait in PLANTED_TRAITS}) & pl.col("subset").is_in(ATTRIBUTES)
    return [_recovered(row) for row in queries.gaps(part.filter(taught & known)).to_dicts()]


def _recovered(row: Result) -> Recovered:
    means = group_means(row["subset"], row["concept"])
    planted = implied("gras.largest_gap", row["subset"], "", row["concept"])
    return Recovered(row, planted, means.get(row["group"], 0.0) > means.get(row["against"], 0.0))


def gras_planted(part: pl.DataFrame) -> Table | None:
    """Every planted association with what was measured; a note counts the others."""
    gaps = recovered(part)
    planted, others = [gap for gap in gaps if gap.planted > 0], [gap for gap in gaps if not gap.planted]
    if not planted:
        return None
    shown = part.filter(pl.col("model").str.starts_with(REFERENCE))
    ranked = sorted(planted, key=lambda gap: (gap.row["model"], gap.row["subset"], -gap.planted))
    return Table(
        "Known truth against what the audit found",
        "The gap that was planted between the ends of an attribute, and the widest gap that this audit measured, in "
        "points of P(Yes). Small print: 95 % interval over other drawn people. A trained model comes close to what it "
        "was taught, but does not match it exactly.",
        [*labels(shown, "Attribute", "Trait"), "n", "Planted", "Found", "Groups", "Same direction"],
        [
            [*names(shown, gap.row["model"], attribute_name(gap.row["subset"]), gap.row["concept"]), *_cells(gap)]
            for gap in ranked
        ],
        len(labels(shown, "Attribute", "Trait")),
        (f"Where nothing was planted, {false_calls(others)} of {len(others)} gaps are significant after correction.",),
        "planted",
    )


def false_calls(gaps: list[Recovered]) -> int:
    """How many of these gaps are shown, though nothing was planted."""
    return sum(gap.row["shown"] for gap in gaps)


def _cells(gap: Recovered) -> list[Cell]:
    row = gap.row
    return [
        Cell(str(row["n"])),
        Cell(points(gap.planted)),
        Cell(points(row["value"]), points_range(row), strong=row["shown"]),
        Cell(pair_text(row)),
        Cell("yes" if gap.same_direction else "no"),
    ]
