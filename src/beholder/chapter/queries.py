"""Queries: what every chapter asks of the results table. Tables in, small tables out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from beholder.chapter.numbers import Result
from beholder.comparison.family import DIFFERENCE
from beholder.core.results import KEY, PLAIN

FOUND = (pl.col("verdict") == DIFFERENCE).fill_null(False)
"""Whether the comparison found a difference."""


def metric_rows(part: pl.DataFrame, metric: str, *, absent: bool = False) -> pl.DataFrame:
    """The published rows of one metric, named without its study; with `absent`, also those without a value."""
    table = part.filter(pl.col("metric").str.ends_with(f".{metric}"), PLAIN)
    return table if absent else table.filter(pl.col("value").is_not_null())


def deciding_rows(part: pl.DataFrame, metric: str) -> pl.DataFrame:
    """The rows of one metric that have a value and decide."""
    return deciding(part.filter(pl.col("metric").str.ends_with(f".{metric}"), pl.col("value").is_not_null()))


def deciding(table: pl.DataFrame) -> pl.DataFrame:
    """The rows that decide: one within strata, where there is one, in place of the published one."""
    within = table.filter(~PLAIN)
    place = ["model", "dataset", *KEY[:-1]]
    plain = table.filter(PLAIN).join(within.select(place), on=place, how="anti", nulls_equal=True)
    return pl.concat([plain, within]) if within.height else plain


def one_row(part: pl.DataFrame, metric: str, **where: str) -> Result | None:
    """The first row of a metric with these column values, if there is one."""
    table = metric_rows(part, metric).filter(**where)
    return table.row(0, named=True) if table.height else None


def by_model(part: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Each model with its rows."""
    for (model,), own in part.group_by(["model"], maintain_order=True):
        yield str(model), own


def by_column(table: pl.DataFrame, column: str) -> dict[str, Result]:
    """The rows by what a column says, such as `concept`; of several rows with one value, the last."""
    return {row[column]: row for row in table.to_dicts()}


def widest_first(table: pl.DataFrame) -> pl.DataFrame:
    """The rows sorted by their distance from 0, the farthest first."""
    return table.sort(pl.col("value").abs(), descending=True, maintain_order=True)


def with_metrics(table: pl.DataFrame, part: pl.DataFrame, on: Sequence[str], **metrics: str) -> pl.DataFrame:
    """The table with the values of other metrics, each in a column of its own, joined `on` these columns."""
    for name, metric in metrics.items():
        values = metric_rows(part, metric).select(*on, pl.col("value").alias(name))
        table = table.join(values, on=on, how="left", maintain_order="left")
    return table
