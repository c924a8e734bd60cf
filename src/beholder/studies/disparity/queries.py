"""Disparity's rows read for a person: one line a concept, with everything known about its gap.

Tables in, small tables out; every number is a row of the results.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.numbers import Result
from beholder.studies.disparity.gaps import ALPHA

AGREES, OPPOSES, UNKNOWN = "as word vectors", "against word vectors", "no word vector"
"""Whether a gap points where word vectors put the concept."""


def rows(part: pl.DataFrame, what: str) -> pl.DataFrame:
    """The rows of one metric that have a value."""
    return part.filter((pl.col("metric") == f"disparity.{what}") & pl.col("value").is_not_null())


def models(part: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Model by model."""
    for (model,), mine in part.group_by(["model"], maintain_order=True):
        yield str(model), mine


def pairs(part: pl.DataFrame) -> list[str]:
    """Who is compared with whom, as `first less second`."""
    there = part.filter(pl.col("metric") == "disparity.ap_gap")["group"]
    return list(dict.fromkeys(there.drop_nulls().to_list()))


def sides(pair: str) -> tuple[str, str]:
    """The two names of a pair.

    >>> sides("man less woman")
    ('man', 'woman')
    """
    first, _, second = pair.partition(" less ")
    return first, second


def groups(part: pl.DataFrame) -> list[str]:
    """The groups, in order."""
    there = part.filter(pl.col("metric") == "disparity.mean_average_precision")["group"]
    return list(dict.fromkeys(there.drop_nulls().to_list()))


def gaps(part: pl.DataFrame, pair: str) -> pl.DataFrame:
    """Every concept with a matched gap, the widest first, with what else is known of it in columns of its own.

    `shown`: p ≤ 0.05 after correction and an interval that excludes 0.
    """
    mine = part.filter(pl.col("group") == pair)
    table = rows(mine, "ap_gap_matched")
    for name, metric in (
        ("raw", "ap_gap"),
        ("detectable", "gap_detectable"),
        ("alignment", "word_alignment"),
        ("same_area", "ap_gap_same_area"),
        ("area_gap", "area_gap"),
        ("names", "names"),
    ):
        found = rows(mine, metric).select("concept", pl.col("value").alias(name))
        table = table.join(found, on="concept", how="left", maintain_order="left")
    shown = (pl.col("p_value") <= ALPHA) & ((pl.col("low") > 0) | (pl.col("high") < 0))
    same = (pl.col("value") * pl.col("alignment")).sign()
    words = pl.when(same > 0).then(pl.lit(AGREES)).when(same < 0).then(pl.lit(OPPOSES)).otherwise(pl.lit(UNKNOWN))
    return table.with_columns(shown.fill_null(False).alias("shown"), words.alias("words")).sort(
        pl.col("value").abs(), descending=True, maintain_order=True
    )


def tested(part: pl.DataFrame, pair: str) -> pl.DataFrame:
    """The gaps that have an interval or a p-value."""
    return gaps(part, pair).filter(pl.col("p_value").is_not_null())


def calibration_gaps(part: pl.DataFrame, pair: str) -> pl.DataFrame:
    """Gaps in miscalibration, the widest first."""
    found = rows(part.filter(pl.col("group") == pair), "miscalibration_gap")
    return found.sort(pl.col("value").abs(), descending=True, maintain_order=True)


def ends(table: pl.DataFrame, number: int) -> list[Result]:
    """The widest gaps in either direction, from the most positive to the most negative."""
    above = table.filter(pl.col("value") > 0).sort("value", descending=True).head(number)
    below = table.filter(pl.col("value") < 0).sort("value", descending=True).tail(number)
    return [*above.to_dicts(), *below.to_dicts()]


def one(part: pl.DataFrame, what: str, **where: str | None) -> Result | None:
    """The row of a metric at a place, if there is one."""
    table = rows(part, what)
    for column, value in where.items():
        table = table.filter(pl.col(column).is_null() if value is None else pl.col(column) == value)
    return table.row(0, named=True) if table.height else None


def by_concept(part: pl.DataFrame, what: str, group: str) -> dict[str, Result]:
    """A metric of one group, concept by concept."""
    return {row["concept"]: row for row in rows(part.filter(pl.col("group") == group), what).to_dicts()}
