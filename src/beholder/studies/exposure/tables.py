"""Tables of exposure. All captions are one set, so only the table of known names has a column for the model."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import INTERVALS, Cell, Table, labels, names, notes_of, percent_cell, ratio_cell, rows_of
from beholder.chapter.numbers import ABSENT, MINUS, Result, plural, remarks, row_p_value
from beholder.comparison import DIFFERENCE
from beholder.studies.exposure.measures import ADJUSTED, CHANGE, CRUDE, EVERYONE, MEAN, TYPICAL, UNADJUSTED
from beholder.studies.public_figures.levels import GROUPS


def typical_ratios(results: pl.DataFrame) -> list[Result]:
    """Women over men in geometric means: each branch, and over all branches at equal branches."""
    return [row for row in rows_of(results, "ratio") if row["concept"] == TYPICAL]


def found(row: Result) -> bool:
    """Whether the comparison found a difference."""
    return bool(row["verdict"] == DIFFERENCE)


# Tables of exposure


def exposure_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Who is named, women over men, words, and what a model knows; each as far as it was measured."""
    mean, ratios, words = (rows_of(part, metric) for metric in ("captions", "ratio", "category"))
    if mean:
        yield _people_table(mean, rows_of(part, "captions_median"), rows_of(part, "never"))
    if ratios:
        yield _ratio_table(ratios, {(row["subset"], row["group"]): row["n"] for row in mean})
    if words:
        yield _word_table(words)
    known = part.filter(pl.col("metric").str.starts_with("exposure.identity"))
    if known.height:
        yield _identity_table(known)


def _people_table(mean: list[Result], median: list[Result], never: list[Result]) -> Table:
    medians, shares = ({(row["subset"], row["group"]): row for row in rows} for rows in (median, never))
    body = []
    for row in mean:
        subset, group = row["subset"], row["group"]
        cells = number_cell(row, strong=True), number_cell(medians.get((subset, group)))
        body.append(
            [Cell(subset), Cell(plural(group)), Cell(str(row["n"])), *cells, percent_cell(shares.get((subset, group)))]
        )
    caption = f"How many captions name a person, and the share of people that no caption names. {INTERVALS}"
    header = ["Branch", "Labelled", "n", "Mean", "Median", "Never named"]
    return Table("Captions per person", caption, header, body, 2, notes_of(mean), "named")


def _ratio_table(rows: list[Result], people: dict[tuple[str, str], int]) -> Table:
    cells = {(row["subset"], row["concept"]): row for row in rows}
    lines = [(subset, TYPICAL, MEAN) for subset in dict.fromkeys(row["subset"] for row in rows)]
    if (EVERYONE, CRUDE[TYPICAL]) in cells:
        lines.append((EVERYONE, CRUDE[TYPICAL], CRUDE[MEAN]))
    body = [
        [
            Cell(f"{subset}, crude" if typical == CRUDE[TYPICAL] else subset),
            Cell(" / ".join(str(people[subset, group]) for group in GROUPS)),
            *(_ratio(cells.get((subset, which))) for which in (typical, mean)),
            _p_cell(cells.get((subset, typical))),
        ]
        for subset, typical, mean in lines
    ]
    caption = (
        "Captions per person, women over men; 1: alike, below 1: women are named less often. Typical: geometric means "
        "of 1 + captions. All branches: women against men of their own branch; crude: against all men, so that it also "
        "follows which branches are named often. p: of the typical ratio. Small print: 95 % interval. Intervals and p "
        "hold for all subsets together."
    )
    header = ["Branch", "n women / men", "Typical", "Of the means", "p"]
    return Table("Women over men", caption, header, body, 1, notes_of(rows), "named")


def _p_cell(row: Result | None) -> Cell:
    return Cell(ABSENT) if row is None else Cell(row_p_value(row), strong=found(row))


def _word_table(rows: list[Result]) -> Table:
    body = [
        [
            Cell(row["subset"]),
            Cell(row["concept"]),
            Cell(f"{row['value']:,.0f}", strong=True),
            Cell(f"{1e6 * row['value'] / row['n']:,.0f}"),
        ]
        for row in rows
    ]
    caption = f"Captions that contain a word, among {rows[0]['n']:,}. A count has no interval."
    notes = tuple(f"{row['concept']}: {remarks(row)}" for row in rows if remarks(row))
    return Table("Words", caption, ["Level", "Word", "Captions", "per million"], body, 2, notes, "words", long=True)


def _identity_table(part: pl.DataFrame) -> Table:
    rows, gaps = rows_of(part, "identity_correlation"), rows_of(part, "identity_gap")
    gap_of = {(row["model"], row["subset"], row["concept"]): row for row in gaps}
    body = []
    for row in rows:
        key = row["model"], row["subset"]
        differences = [_ratio(gap_of.get((*key, which))) for which in (UNADJUSTED, ADJUSTED, CHANGE)]
        body.append([*names(part, *key), Cell(str(row["n"])), number_cell(row, strong=True), *differences])
    caption = (
        "How many times as likely the right name is as the names of other people with the same labels: Spearman's "
        "correlation with captions, within branch and gender; and women over men, as measured and at equal "
        f"log(1 + captions). {INTERVALS} It holds for all subsets together."
    )
    left = labels(part, "Branch")
    header = [*left, "n", "Correlation", "Women over men", "At equal exposure", "Change"]
    notes = notes_of([*rows, *gaps])
    return Table("Named and known by name", caption, header, body, len(left), notes, "known")


def number_cell(row: Result | None, *, strong: bool = False) -> Cell:
    """A plain number with its interval."""
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    interval = "" if row["low"] is None else f"{plain(row['low'])} to {plain(row['high'])}"
    return Cell(plain(row["value"]), interval, strong)


def _ratio(row: Result | None) -> Cell:
    return Cell(ABSENT) if row is None or row["value"] is None else ratio_cell(row)


def plain(value: float) -> str:
    """A number with at least two digits that tell it from 0, and a true minus sign.

    >>> plain(1234.5), plain(-0.1234), plain(0.00123), plain(0)
    ('1,234', '−0.12', '0.0012', '0')
    """
    size = abs(value)
    if size >= 100 or size < 1e-9:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.3g}" if size >= 1 else f"{value:.{max(2, 1 - math.floor(math.log10(size)))}f}"
    return text.replace("-", MINUS) if float(text.replace(",", "")) else text.removeprefix("-")
