"""Known truth for GRAS: the trait associations that the generative reference model was taught."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from beholder.chapter.chapter import Column, Table, points_cell, tabled
from beholder.chapter.numbers import Result, points
from beholder.glasshouse.planted import ATTRIBUTES, PLANTED_TRAITS, REFERENCE, group_means
from beholder.studies.gras import phrases
from beholder.studies.gras.phrases import attribute_name, pair_text


class Recovered(NamedTuple):
    """One trait's gap by one attribute: what was planted, what was measured, and whether the directions agree."""

    row: Result
    planted: float
    """The planted gap; 0 where nothing was planted."""
    same_direction: bool
    """Whether the group that was measured higher is also the one that was planted higher."""


def recovered(part: pl.DataFrame) -> tuple[list[Recovered], list[Recovered]]:
    """Every measured gap of a trait that was planted, and those where nothing was; none for models taught nothing."""
    taught = pl.col("model").str.starts_with(REFERENCE) & pl.col("dataset").str.starts_with("glasshouse")
    known = pl.col("concept").is_in({trait.trait for trait in PLANTED_TRAITS}) & pl.col("subset").is_in(ATTRIBUTES)
    gaps = []
    for row in phrases.gaps(part).filter(taught & known).to_dicts():
        means = group_means(row["subset"], row["concept"])
        same_direction = means.get(row["group"], 0.0) > means.get(row["against"], 0.0)
        gaps.append(Recovered(row, planted_gap(row["subset"], row["concept"]), same_direction))
    return [gap for gap in gaps if gap.planted > 0], [gap for gap in gaps if not gap.planted]


def planted_gap(attribute: str, trait: str) -> float:
    """The gap that an audit of the faces should find: between the groups with the highest and the lowest mean."""
    means = group_means(attribute, trait).values()
    return round(max(means) - min(means), 12)  # 0 where nothing is planted, not 1e-17


def gras_planted(part: pl.DataFrame) -> Table | None:
    """Every planted association with what was measured; a note counts the others."""
    planted, others = recovered(part)
    if not planted:
        return None
    ranked = sorted(planted, key=lambda gap: (gap.row["model"], gap.row["subset"], -gap.planted))
    rows = [{**gap.row, "planted": gap.planted, "same": "yes" if gap.same_direction else "no"} for gap in ranked]
    left: list[Column] = [("Attribute", lambda row: attribute_name(row["subset"])), ("Trait", "concept")]
    columns: list[Column] = [("n", "n"), ("Planted", lambda row: points(row["planted"]))]
    columns += [("Found", lambda row: points_cell(row, plain=True)), ("Groups", pair_text), ("Same direction", "same")]
    caption = (
        "The gap that was planted between the ends of an attribute, and the widest gap that this audit measured, in "
        "points of P(Yes). Small print: 95 % interval over other drawn people. A trained model comes close to what it "
        "was taught, but does not match it exactly."
    )
    named = {"title": "Known truth against what the audit found", "topic": "planted"}
    shown = part.filter(pl.col("model").str.starts_with(REFERENCE))
    notes = [false_calls(others)] if others else []
    return tabled(shown, rows, left, columns, caption=caption, notes=notes, **named)


def false_calls(gaps: list[Recovered]) -> str:
    """In how many of these a difference was found, though nothing was planted."""
    found = sum(gap.row["found"] for gap in gaps)
    return f"Where nothing was planted, a difference was found in {found} of {len(gaps)} gaps."
