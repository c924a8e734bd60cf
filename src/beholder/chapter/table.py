"""Table: what a person reads, for the page and for the terminal alike; and the cells that tables are made of."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from beholder.chapter.numbers import (
    ABSENT,
    Result,
    chance,
    decimals_for,
    percent,
    ratio,
    ratio_decimals,
    ratio_range,
    remarks,
)
from beholder.chapter.queries import metric_rows


class Cell(NamedTuple):
    """What is read first, and what stands small beside it."""

    text: str
    detail: str = ""
    strong: bool = False
    remark: str = ""
    """Small, after the detail; the terminal leaves it to the page."""


class Table(NamedTuple):
    """A table to read: the caption says the unit and what it means."""

    title: str
    caption: str
    header: list[str]
    rows: list[list[Cell]]
    labels: int = 1
    """How many columns at the left name the row."""
    notes: tuple[str, ...] = ()
    topic: str = "results"
    long: bool = False
    """Whether it is better opened than shown."""
    extras: tuple[str, ...] = ()
    """Columns that a narrow terminal leaves to the page."""
    exported: bool = False
    """Whether the exports have it although it is long."""


INTERVALS = "Small print: 95 % interval."


def rows_of(part: pl.DataFrame, metric: str) -> list[Result]:
    """All rows of a metric, absent values too."""
    return metric_rows(part, metric, absent=True).to_dicts()


def percent_cell(row: Result | None, *, with_chance: bool = False, strong: bool = False) -> Cell:
    """A probability with its interval."""
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    places = decimals_for(row, least=1)
    interval = "" if row["low"] is None else f"{100 * row['low']:.{places}f}–{100 * row['high']:.{places}f}"
    level = chance(row) if with_chance else None
    remark = f"chance {percent(level).removesuffix(' %')}" if level else ""
    return Cell(percent(row["value"], places), interval, strong, remark)


def ratio_cell(row: Result) -> Cell:
    """A ratio with its interval."""
    interval = ratio_range(row)
    return Cell(ratio(row["value"], ratio_decimals(row)), "" if interval == ABSENT else interval, strong=True)


def names(part: pl.DataFrame, model: str, *more: str) -> list[Cell]:
    """The cells that name a row: the model only where there are several."""
    return [Cell(word) for word in ((model, *more) if part["model"].n_unique() > 1 else more)]


def labels(part: pl.DataFrame, *more: str) -> list[str]:
    """Their headings."""
    return ["Model", *more] if part["model"].n_unique() > 1 else list(more)


def notes_of(rows: list[Result]) -> tuple[str, ...]:
    """What the rows remark: why a value is absent, what was left out."""
    notes = (f"{row['subset']}: {remarks(row)}" for row in rows if remarks(row))
    return tuple(dict.fromkeys(notes))


def sizes(rows: list[Result]) -> str:
    """One n where the columns agree, else each."""
    counts = list(dict.fromkeys(str(row["n"]) for row in rows))
    return counts[0] if len(counts) == 1 else " / ".join(str(row["n"]) for row in rows) or ABSENT
