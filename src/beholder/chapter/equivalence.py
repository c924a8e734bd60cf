"""Tables of equivalence: is any bias shown to be smaller than δ? Only where a δ was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from beholder.chapter.numbers import Result
from beholder.chapter.table import Cell, Table, labels, names, rows_of
from beholder.metrics.equivalence import VERDICTS

_DELTA = re.compile(r"δ = ([0-9.e-]+)")
CAPTION = (
    "Two one-sided tests at 5 %. Bound: the smallest δ that the data would show. "
    "What is neither shown to differ nor shown to be alike is undecided."
)


def verdict_of(row: Result) -> str:
    """The verdict; the note begins with it."""
    return str(row["note"]).partition(";")[0]


def delta_of(rows: list[Result]) -> str:
    """The δ that was asked for."""
    found = _DELTA.search(rows[0]["note"] or "")
    return found[1] if found else ""


def ratio_equivalence_table(part: pl.DataFrame) -> Iterator[Table]:
    """Pool by pool."""
    rows = rows_of(part, "equivalence")
    if not rows:
        return
    body = [
        [
            *names(part, row["model"], row["subset"]),
            Cell(str(row["n"])),
            _bound(row),
            Cell(f"{row['p_value']:.2g}"),
            Cell(verdict_of(row), strong=True),
        ]
        for row in rows
    ]
    delta = delta_of(rows)
    yield Table(
        f"Is b shown to be within a factor of {1 + float(delta):g} of 1?",
        CAPTION,
        [*labels(part, "Pool"), "n", "Bound", "p", "Verdict"],
        body,
        len(labels(part, "Pool")),
        tuple(f"{name}: {meaning}." for name, meaning in VERDICTS.items()),
        "gender",
    )


def _bound(row: Result) -> Cell:
    return Cell("none" if row["value"] is None else f"factor {1 + row['value']:.2f}")


def gap_equivalence_table(part: pl.DataFrame) -> Iterator[Table]:
    """How many traits have which verdict, attribute by attribute."""
    rows = rows_of(part, "equivalence")
    if not rows:
        return
    body = []
    for model, attribute in dict.fromkeys((row["model"], row["subset"]) for row in rows):
        mine = [row for row in rows if (row["model"], row["subset"]) == (model, attribute)]
        said = [verdict_of(row) for row in mine]
        bounds = sorted(row["value"] for row in mine if row["value"] is not None)
        middle = Cell(f"{100 * bounds[len(bounds) // 2]:.1f}") if bounds else Cell("none")
        body.append(
            [
                *names(part, model, attribute.replace("_", " ")),
                Cell(str(mine[0]["n"])),
                middle,
                *(Cell(str(said.count(verdict))) for verdict in VERDICTS),
            ]
        )
    points = 100 * float(delta_of(rows))
    yield Table(
        f"Traits shown to differ, or shown to be within {points:g} points",
        f"{CAPTION} Bound: median over traits, in points of P(Yes). Counts of traits, corrected over traits.",
        [*labels(part, "Attribute"), "n", "Bound", *(verdict.capitalize() for verdict in VERDICTS)],
        body,
        len(labels(part, "Attribute")),
        tuple(f"{name}: {meaning}." for name, meaning in VERDICTS.items()),
        "gaps",
    )
