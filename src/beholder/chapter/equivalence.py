"""Tables of equivalence: is any bias shown to be smaller than δ? Only where a δ was asked for."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import Cell, Table, labels, names, rows_of
from beholder.chapter.numbers import Result
from beholder.metrics.equivalence import VERDICTS

CAPTION = (
    "Two one-sided tests at 5 %. Bound: the smallest δ that the data would show. "
    "What is neither shown to differ nor shown to be alike is undecided."
)


def equivalence_rows(part: pl.DataFrame) -> list[Result]:
    """The rows that answer the test; runs of Beholder 0.1 have none."""
    return [row for row in rows_of(part, "equivalence") if row["equivalence"] is not None and row["delta"] is not None]


def ratio_equivalence_table(part: pl.DataFrame) -> Iterator[Table]:
    """Pool by pool."""
    rows = equivalence_rows(part)
    if not rows:
        return
    body = [
        [
            *names(part, row["model"], row["subset"]),
            Cell(str(row["n"])),
            _bound(row),
            Cell(f"{row['p_value']:.2g}"),
            Cell(row["equivalence"], strong=True),
        ]
        for row in rows
    ]
    yield Table(
        f"Is b shown to be within a factor of {1 + rows[0]['delta']:g} of 1?",
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
    rows = equivalence_rows(part)
    if not rows:
        return
    body = []
    for model, attribute in dict.fromkeys((row["model"], row["subset"]) for row in rows):
        own = [row for row in rows if (row["model"], row["subset"]) == (model, attribute)]
        verdicts = [row["equivalence"] for row in own]
        bounds = sorted(row["value"] for row in own if row["value"] is not None)
        middle = Cell(f"{100 * bounds[len(bounds) // 2]:.1f}") if bounds else Cell("none")
        body.append(
            [
                *names(part, model, attribute.replace("_", " ")),
                Cell(str(own[0]["n"])),
                middle,
                *(Cell(str(verdicts.count(verdict))) for verdict in VERDICTS),
            ]
        )
    yield Table(
        f"Traits shown to differ, or shown to be within {100 * rows[0]['delta']:g} points",
        f"{CAPTION} Bound: median over traits, in points of P(Yes). Counts of traits, corrected over traits.",
        [*labels(part, "Attribute"), "n", "Bound", *(verdict.capitalize() for verdict in VERDICTS)],
        body,
        len(labels(part, "Attribute")),
        tuple(f"{name}: {meaning}." for name, meaning in VERDICTS.items()),
        "gaps",
    )
