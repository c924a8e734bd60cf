"""Tables of exposure. Captions stand in the model's column of their own rows; identity rows name the model."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.exposure.measures import ADJUSTED, CHANGE, MEAN, TYPICAL, UNADJUSTED
from beholder.report import words
from beholder.report.numbers import ABSENT, Result, remarks
from beholder.report.table import INTERVALS, Cell, Table, labels, names, percent_cell, ratio_cell, rows_of

CORRELATION, GAP = "identity_correlation", "identity_gap"


def exposure_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Who is named, women over men, words, and beside what a model knows."""
    about = pl.col("metric").str.contains("identity")
    captions, known = part.filter(~about), part.filter(about)
    yield from _people_table(captions)
    yield from _ratio_table(captions)
    yield from _word_table(captions)
    yield from _identity_table(known)


def _people_table(part: pl.DataFrame) -> Iterator[Table]:
    mean = rows_of(part, "captions")
    if not mean:
        return
    median, never = (_by_place(rows_of(part, metric)) for metric in ("captions_median", "never"))
    body = [
        [
            *names(part, row["model"], row["subset"], words.GROUPS.get(str(row["group"]), str(row["group"]))),
            Cell(f"{row['n']:,}"),
            number_cell(row, strong=True),
            number_cell(median.get(_place(row))),
            percent_cell(never.get(_place(row))),
        ]
        for row in mean
    ]
    caption = f"How many captions name a person, and how many people no caption names. {INTERVALS}"
    header = [*labels(part, "Branch", "Labelled"), "n", "Mean", "Median", "Never named"]
    yield Table(
        "Captions per person",
        caption,
        header,
        body,
        len(labels(part, "Branch", "Labelled")),
        _notes(mean),
        "named",
    )


def _ratio_table(part: pl.DataFrame) -> Iterator[Table]:
    rows = rows_of(part, "ratio")
    places = dict.fromkeys((row["model"], row["subset"]) for row in rows)
    people = _by_place(rows_of(part, "captions"))
    cells = {(row["model"], row["subset"], row["concept"]): row for row in rows}
    body = [
        [
            *names(part, model, subset),
            Cell(" / ".join(str(people[model, subset, group]["n"]) for group in words.GROUPS)),
            *(_ratio(cells.get((model, subset, which))) for which in (TYPICAL, MEAN)),
        ]
        for model, subset in places
    ]
    if body:
        caption = (
            "Captions per person, women over men; 1: alike, below 1: women are named less. Typical: geometric means of "
            f"1 + captions. {INTERVALS}"
        )
        header = [*labels(part, "Branch"), "n women / men", "Typical", "Of the means"]
        yield Table(
            "Women over men", caption, header, body, len(labels(part, "Branch")), _notes(rows), "named"
        )


def _word_table(part: pl.DataFrame) -> Iterator[Table]:
    rows = rows_of(part, "category")
    if rows:
        body = [
            [
                *names(part, row["model"], row["subset"], row["concept"]),
                Cell(f"{row['value']:,.0f}", strong=True),
                Cell(f"{1e6 * row['value'] / row['n']:,.0f}"),
            ]
            for row in rows
        ]
        caption = (
            f"Captions that say a word, among {rows[0]['n']:,}. A count of what was given has no interval."
        )
        header = [*labels(part, "Level", "Word"), "Captions", "per million"]
        notes = tuple(f"{row['concept']}: {remarks(row)}" for row in rows if remarks(row))
        yield Table(
            "Words", caption, header, body, len(labels(part, "Level", "Word")), notes, "said", long=True
        )


def _identity_table(part: pl.DataFrame) -> Iterator[Table]:
    rows = rows_of(part, CORRELATION)
    gaps = {(row["model"], row["subset"], row["concept"]): row for row in rows_of(part, GAP)}
    body = [
        [
            *names(part, row["model"], row["subset"]),
            Cell(str(row["n"])),
            number_cell(row, strong=True),
            *(
                points_cell(gaps.get((row["model"], row["subset"], which)))
                for which in (UNADJUSTED, ADJUSTED, CHANGE)
            ),
        ]
        for row in rows
    ]
    if body:
        caption = (
            "Spearman's correlation of captions with the probability of the right name; then that probability, women "
            f"less men, in percentage points, as measured and at equal log(1 + captions). {INTERVALS}"
        )
        header = [
            *labels(part, "Branch"),
            "n",
            "Correlation",
            "Gap as measured",
            "At equal exposure",
            "Change",
        ]
        notes = _notes([*rows, *gaps.values()])
        yield Table(
            "Named and known by name", caption, header, body, len(labels(part, "Branch")), notes, "known"
        )


def number_cell(row: Result | None, *, strong: bool = False) -> Cell:
    """A plain number with its interval."""
    return _cell(row, 1.0, strong)


def points_cell(row: Result | None) -> Cell:
    """A difference of probabilities in percentage points."""
    return _cell(row, 100.0, strong=False)


def _cell(row: Result | None, unit: float, strong: bool) -> Cell:
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    numbers = [row[key] for key in ("value", "low", "high")]
    value, low, high = ("" if each is None else plain(unit * each) for each in numbers)
    return Cell(value, f"{low} to {high}" if low else "", strong)


def plain(value: float) -> str:
    """A number as short as its size allows, with a true minus sign.

    >>> plain(1234.5), plain(-0.1234), plain(0)
    ('1,234', '−0.12', '0')
    """
    text = (
        f"{value:,.0f}"
        if abs(value) >= 100 or value == 0
        else f"{value:.3g}"
        if abs(value) >= 1
        else f"{value:.2f}"
    )
    return text.replace("-", "−")


def _ratio(row: Result | None) -> Cell:
    return Cell(ABSENT) if row is None or row["value"] is None else ratio_cell(row)


def _place(row: Result) -> tuple[str, str, str]:
    return row["model"], row["subset"], row["group"]


def _by_place(rows: list[Result]) -> dict[tuple[str, str, str], Result]:
    return {_place(row): row for row in rows}


def _notes(rows: list[Result]) -> tuple[str, ...]:
    """Who was left out, and why a value is absent."""
    said = (f"{row['subset']}: {remarks(row)}" for row in rows if remarks(row))
    return tuple(dict.fromkeys(said))
