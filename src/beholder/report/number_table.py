"""The number table: every row of a table in the page, to be filtered, sorted and searched there.

Each word is stored once and named by its number, so that ten thousand rows take little space.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from beholder.chapter.chapter import INTERVALS, Cell, Table, notes_of, tabled
from beholder.chapter.numbers import ABSENT, Result, listed
from beholder.core.results import KEY

MOST = 30_000  # A page with more rows than this would open slowly: beyond, they are left to the files
DIGITS = 5


class Column(NamedTuple):
    """A column as it is shown: some fields joined, and others small beside them."""

    label: str
    fields: Sequence[str]
    kind: str = "words"  # `name`: the row's own; `words`; `number`; `reason`: long words
    small: Sequence[str] = ()
    dot: bool = False  # whether a coloured dot stands before it


class Ledger(NamedTuple):
    """A table for the page: its columns as they are shown, the columns to filter by, and what to say of its rows."""

    table: pl.DataFrame
    columns: Sequence[Column]
    filters: Sequence[tuple[str, str]] = ()  # a column of the table, and what it is called
    said: str = ""

    @property
    def data(self) -> dict[str, object]:
        """What is shown and filtered, column by column: numbers rounded, words as numbers into a list of their own."""
        used = {name for name, _ in self.filters}
        used |= {name for column in self.columns for name in (*column.fields, *column.small)}
        fields = {name: _packed_column(self.table[name]) for name in self.table.columns if name in used}
        return {"rows": self.table.height, "columns": [column._asdict() for column in self.columns], "fields": fields}


FILTERED = "study dataset model metric subset group against concept template verdict".split()
FILTERS = {name: name.capitalize() for name in FILTERED} | {"dataset": "Data set", "template": "Wording"}


def results_ledger(results: pl.DataFrame) -> Ledger | None:
    """Every row of the results; None where there is none, or too many for a page."""
    if not 0 < results.height <= MOST:
        return None
    varied = [name for name in FILTERS if results[name].n_unique() > 1]
    whose = [name for name in ("model", "dataset") if name in varied]
    columns = [
        Column("Metric", ("metric",), "name"),
        *(Column(FILTERS[name], (name,)) for name in whose),
        Column("Of", KEY[1:]),
        Column("Value", ("value",), "number", ("low", "high")),
        Column("p", ("p_value",), "number"),
        Column("n", ("n",), "number"),
        *([Column("Verdict", ("verdict",), "words")] if results["verdict"].is_not_null().any() else []),
        Column("Unit", ("unit",), "reason", ("note",)),
    ]
    names = [FILTERS[name].lower() for name in varied if name != "verdict"]
    note = f"Each row is one number; it is named by {listed(names)}." if names else ""
    return Ledger(results, columns, [(name, FILTERS[name]) for name in varied], note)


def _packed_column(values: pl.Series) -> dict[str, object]:
    if values.dtype != pl.String:
        cells = values.round_sig_figs(DIGITS) if values.dtype.is_float() else values
        return {"cells": cells.to_list()}
    words = values.drop_nulls().unique(maintain_order=True)
    places = {word: place for place, word in enumerate(words)}
    return {"words": words.to_list(), "cells": [None if word is None else places[word] for word in values]}


# Plain tables


def plain_tables(part: pl.DataFrame) -> Iterator[Table]:
    """One table a metric, for studies that have no tables of their own."""
    for (metric,), rows in part.group_by(["metric"], maintain_order=True):
        keys = [key for key in KEY[1:] if rows[key].count()] or ["subset"]
        lines = [{**row, **{key: row[key] or "" for key in keys}} for row in rows.to_dicts()]
        left = [(key.capitalize(), key) for key in keys]
        caption, notes = f"In: {rows['unit'][0]}. {INTERVALS}", notes_of(rows.to_dicts())
        own = {"title": str(metric), "caption": caption}
        yield tabled(part, lines, left, [("n", "n"), ("Value", _plain_cell)], **own, notes=notes)


def _plain_cell(row: Result) -> Cell:
    interval = "" if row["low"] is None else f"{row['low']:.3g}–{row['high']:.3g}"
    return Cell(ABSENT) if row["value"] is None else Cell(f"{row['value']:.3g}", interval)
