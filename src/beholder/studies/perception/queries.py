"""Perception's rows, selected for a reader. Tables in, small tables out."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.numbers import Result, excludes
from beholder.metrics.multiplicity import ALPHA
from beholder.studies.perception import phrases
from beholder.studies.perception.scores import EVERYONE, MEAN

PROTECTED = ("race", "skin_tone", "gender", "age")


def rows(part: pl.DataFrame, metric: str, *, absent: bool = False) -> pl.DataFrame:
    """The rows of one metric; with `absent`, also those without a value."""
    table = part.filter(pl.col("metric") == f"perception.{metric}")
    return table if absent else table.filter(pl.col("value").is_not_null())


def models(part: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Every model with its rows."""
    for (model,), table in part.group_by(["model"], maintain_order=True):
        yield str(model), table


def finest(part: pl.DataFrame) -> str:
    """The finest grouping there is: `race × gender`, an attribute alone, or everyone."""
    groupings = list(dict.fromkeys(rows(part, "delta_cosine")["subset"]))
    return groupings[-1] if groupings else EVERYONE


def grouping_of(part: pl.DataFrame) -> dict[str, str]:
    """The grouping that each group belongs to."""
    return dict(rows(part, "delta_cosine").select("group", "subset").iter_rows())


def dimensions(part: pl.DataFrame) -> list[str]:
    """The dimensions, in their order."""
    return list(dict.fromkeys(rows(part, "delta_cosine")["concept"]))


def unit(part: pl.DataFrame) -> str:
    """What the scores are."""
    units = rows(part, "delta_cosine")["unit"]
    return str(units[0]) if len(units) else "cosine"


def printed_unit(part: pl.DataFrame) -> str:
    """The same as printed."""
    return phrases.PRINTED.get(unit(part), unit(part))


def shown(row: Result) -> bool:
    """Whether a difference is shown: a corrected p of at most 0.05, and an interval without 0."""
    return row["p_value"] is not None and row["p_value"] <= ALPHA and excludes(row, 0.0)


def largest(part: pl.DataFrame, metric: str, number: int | None = None, *, subset: str | None = None) -> list[Result]:
    """The rows of a metric, those farthest from 0 first."""
    table = rows(part, metric)
    table = table if subset is None else table.filter(pl.col("subset") == subset)
    return (
        table.sort(pl.col("value").abs(), descending=True, maintain_order=True).head(number or table.height).to_dicts()
    )


def over_dimensions(part: pl.DataFrame, metric: str) -> list[Result]:
    """A metric's rows that are means over the dimensions."""
    return rows(part, metric, absent=True).filter(pl.col("concept") == MEAN).to_dicts()


def induced(part: pl.DataFrame) -> list[Result]:
    """Attributes by the median difference they make, the largest first, with their boxes."""
    medians = rows(part, "induced_variation").filter(pl.col("concept") == MEAN).sort("value", descending=True)
    box = rows(part, "induced_variation_quantile").filter(pl.col("concept") == MEAN)
    quantiles = {(row["model"], row["subset"], row["template"]): row["value"] for row in box.to_dicts()}
    return [
        {
            **row,
            "box": [quantiles.get((row["model"], row["subset"], share)) for share in ("0.05", "0.25", "0.75", "0.95")],
        }
        for row in medians.to_dicts()
    ]
