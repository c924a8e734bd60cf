"""Sensitivity: how far small changes of the pictures move the number behind each finding, against its interval."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from beholder.chapter.chapter import Cell, Table
from beholder.chapter.finding import Finding, stored
from beholder.chapter.numbers import has_interval
from beholder.core.results import KEY, SCHEMA

PLACE = ("study", "dataset", "model", *KEY)
PERTURBED = {**SCHEMA, "change": pl.String()}
"""The results once more for every change, with what was changed."""


class Move(NamedTuple):
    """How far the number of a finding moved."""

    finding: Finding
    low: float
    high: float
    """The lowest and the highest value, the unchanged pictures included."""
    share: float | None
    """Their distance as a share of the width of the interval; None without an interval."""


def moves(findings: list[Finding], perturbed: pl.DataFrame) -> list[Move]:
    """One for every finding whose number was measured after changes too, the most moved first."""
    made = []
    values = {place: group["value"] for place, group in perturbed.drop_nulls("value").group_by(PLACE)}
    for finding in findings:
        row = finding.rows[0] if finding.rows else {}
        after = values.get(tuple(stored(row).get(name) for name in PLACE))
        if after is None or row.get("value") is None:
            continue
        after = -after if row.get("turned") else after
        low, high = min(row["value"], *after), max(row["value"], *after)
        share = (high - low) / (row["high"] - row["low"]) if has_interval(row) else None
        made.append(Move(finding, low, high, share))
    return sorted(made, key=lambda move: -(move.share or 0.0))


def sensitivity_table(findings: list[Finding], perturbed: pl.DataFrame) -> Table | None:
    """Each finding's number, how far it moved, and how much of its interval that is; None if nothing was changed."""
    moved = moves(findings, perturbed)
    if not moved:
        return None
    changes = perturbed["change"].unique(maintain_order=True).to_list()
    caption = (
        f"The same measures after each of {len(changes)} small changes of every picture or score: "
        f"{'; '.join(changes)}. "
        "Above 100 %, the changes move the number by more than the width of its interval."
    )
    several = len({move.finding.model for move in moved}) > 1
    rows = [
        [
            *([Cell(move.finding.model)] if several else []),
            Cell(move.finding.headline),
            Cell(_number(move.finding.rows[0]["value"]), _interval(move.finding)),
            Cell(f"{_number(move.low)} to {_number(move.high)}"),
            Cell("no interval" if move.share is None else f"{move.share:.0%}", strong=(move.share or 0) > 1),
        ]
        for move in moved
    ]
    header = [*(["Model"] if several else []), "Finding", "Number", "After small changes", "Share of the interval"]
    return Table("How far small changes of the pictures move the findings", caption, header, rows, labels=1 + several)


def _interval(finding: Finding) -> str:
    row = finding.rows[0]
    return f"{_number(row['low'])} to {_number(row['high'])}" if has_interval(row) else ""


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")
