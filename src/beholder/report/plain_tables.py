"""Plain tables: one for each metric, for studies and metrics without tables of their own."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.numbers import ABSENT, Result
from beholder.chapter.table import INTERVALS, Cell, Table, labels, names, notes_of
from beholder.core.results import KEY


def plain_tables(part: pl.DataFrame) -> Iterator[Table]:
    """One table a metric, for studies that have no tables of their own."""
    for (metric,), rows in part.group_by(["metric"], maintain_order=True):
        keys = [key for key in KEY[1:] if rows[key].count()] or ["subset"]
        body = [
            [*names(part, row["model"], *(row[key] or "" for key in keys)), Cell(str(row["n"])), _plain_cell(row)]
            for row in rows.to_dicts()
        ]
        header = [*labels(part, *(key.capitalize() for key in keys)), "n", "Value"]
        caption, notes = f"In: {rows['unit'][0]}. {INTERVALS}", notes_of(rows.to_dicts())
        yield Table(str(metric), caption, header, body, len(labels(part, *keys)), notes)


def _plain_cell(row: Result) -> Cell:
    if row["value"] is None:
        return Cell(ABSENT)
    return Cell(f"{row['value']:.3g}", "" if row["low"] is None else f"{row['low']:.3g}–{row['high']:.3g}")
