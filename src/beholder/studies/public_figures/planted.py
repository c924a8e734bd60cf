"""Planted beside recovered: what the embedded reference models were taught, and what the audit reads off them.

Only Glasshouse's own models were taught anything; beside any other model nothing is planted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from beholder.chapter import phrases as words
from beholder.chapter.numbers import percent, ratio
from beholder.chapter.table import Cell, Table, labels, names, percent_cell, ratio_cell

REFERENCE = "glasshouse/"
"""How the names of the embedded reference models begin."""


LONG = 15
"""Rows beyond which the sentence about them is enough at first sight."""


class Comparison(NamedTuple):
    """One planted value with what was measured."""

    model: str
    metric: str
    subset: str
    group: str
    concept: str
    planted: float
    value: float | None
    low: float | None
    high: float | None
    n: int
    note: str

    @property
    def off(self) -> float | None:
        """Recovered minus planted; None where nothing was recovered."""
        return None if self.value is None else self.value - self.planted


def comparisons(results: pl.DataFrame) -> list[Comparison]:
    """Every planted value that the results measure, in the order planted."""
    rows = results.filter((pl.col("dataset") == "glasshouse") & pl.col("model").str.starts_with(REFERENCE))
    found = []
    for _, part in rows.group_by("model", maintain_order=True):
        measured = {_key(row, row["concept"]): row for row in part.to_dicts()}
        found += [comparison for entry in planted() if (comparison := _compare(entry, measured))]
    return found


def planted() -> list[dict[str, Any]]:
    """What was planted; nothing where this installation has no reference models."""
    try:
        from beholder.glasshouse.planted import PLANTED
    except ImportError:
        return []
    return PLANTED


def _key(row: dict[str, Any], concept: str | None) -> tuple[str, ...]:
    return row["metric"], row["subset"] or "", row["group"] or "", concept or ""


def _compare(entry: dict[str, Any], measured: dict[tuple[str, ...], dict[str, Any]]) -> Comparison | None:
    """A ratio's row in the results names no concept, the planted one does: either way of writing meets."""
    row = measured.get(_key(entry, entry["concept"])) or measured.get(_key(entry, None))
    if row is None:
        return None
    return Comparison(
        row["model"],
        row["metric"],
        row["subset"] or "",
        row["group"] or "",
        entry["concept"] or "",
        entry["value"],
        row["value"],
        row["low"],
        row["high"],
        row["n"],
        entry["note"] or "",
    )


def planted_table(results: pl.DataFrame) -> Table | None:
    """What was planted beside what was recovered; None where nothing was planted."""
    found = [comparison for comparison in comparisons(results) if comparison.planted > 0]
    if not found:
        return None
    part = results.filter(pl.col("model").str.starts_with(REFERENCE))
    return Table(
        "Planted beside recovered",
        "What follows from the captions that the reference model was trained on, and what this audit measures; small "
        "print: 95 % interval over other drawn people. A trained model comes near what its captions imply, not exactly "
        "to it, so the interval need not hold the planted value; "
        "100 % is a limit that no softmax reaches.",
        [*labels(part, "Result"), "n", "Planted", "Recovered", "Off by"],
        [[*names(part, c.model, _place(c)), *_cells(c)] for c in found],
        len(labels(part, "Result")),
        tuple(dict.fromkeys(f"{c.subset}: {c.note}" for c in found if c.note and c.metric.endswith("bias_ratio"))),
        "planted",
        long=len(found) > LONG,
    )


def _place(found: Comparison) -> str:
    what = {"bias_ratio": "women over men", "association": f"right {found.concept}"}
    name = found.metric.partition(".")[2]
    if name == "occupation_probability":
        return f"{found.subset}: {words.GROUPS.get(found.group, found.group)} called “{found.concept}”"
    said = what.get(name, " ".join(filter(None, (name.replace("_", " "), found.group, found.concept))))
    return f"{found.subset}: {said}"


def _cells(found: Comparison) -> list[Cell]:
    row = {"value": found.value, "low": found.low, "high": found.high, "note": ""}
    is_ratio = found.metric.endswith("ratio")
    planted_cell = Cell(ratio(found.planted) if is_ratio else percent(found.planted, 1))
    recovered = ratio_cell(row) if is_ratio else percent_cell(row, strong=True)
    return [Cell(str(found.n)), planted_cell, recovered, Cell(_off_by(found.off, is_ratio))]


def _off_by(off: float | None, is_ratio: bool) -> str:
    if off is None:
        return "—"
    size = f"{abs(off):.3f}" if is_ratio else f"{100 * abs(off):.1f}"
    sign = "" if float(size) == 0 else "−" if off < 0 else "+"
    return f"{sign}{size}" if is_ratio else f"{sign}{size} points"
