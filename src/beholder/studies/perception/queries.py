"""Perception's rows read for a person. Tables in, small tables out."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.numbers import Result, excludes
from beholder.studies.gras.groups import ALPHA
from beholder.studies.perception import phrases as said
from beholder.studies.perception.scores import EVERYONE, MEAN

PROTECTED = ("race", "skin_tone", "gender", "age")


def rows(part: pl.DataFrame, what: str, *, absent: bool = False) -> pl.DataFrame:
    """The rows of one metric, those without a value on request."""
    mine = part.filter(pl.col("metric") == f"perception.{what}")
    return mine if absent else mine.filter(pl.col("value").is_not_null())


def models(part: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Model after model."""
    for (model,), mine in part.group_by(["model"], maintain_order=True):
        yield str(model), mine


def crossed(part: pl.DataFrame) -> str:
    """The finest grouping there is: `race × gender`, an attribute alone, or everyone."""
    there = list(dict.fromkeys(rows(part, "delta_cosine")["subset"]))
    return there[-1] if there else EVERYONE


def dimensions(part: pl.DataFrame) -> list[str]:
    """The dimensions, in their order."""
    return list(dict.fromkeys(rows(part, "delta_cosine")["concept"]))


def unit(part: pl.DataFrame) -> str:
    """What the scores are."""
    there = rows(part, "delta_cosine")["unit"]
    return str(there[0]) if len(there) else "cosine"


def printed_unit(part: pl.DataFrame) -> str:
    """The same as printed."""
    return said.PRINTED.get(unit(part), unit(part))


def shown(row: Result) -> bool:
    """Whether a difference is borne out: corrected p at most 0.05, and an interval off 0."""
    return row["p_value"] is not None and row["p_value"] <= ALPHA and excludes(row, 0.0)


def largest(part: pl.DataFrame, what: str, number: int, *, subset: str | None = None) -> list[Result]:
    """The rows of a metric farthest from 0."""
    mine = rows(part, what)
    mine = mine if subset is None else mine.filter(pl.col("subset") == subset)
    return mine.sort(pl.col("value").abs(), descending=True, maintain_order=True).head(number).to_dicts()


def over_dimensions(part: pl.DataFrame, what: str) -> list[Result]:
    """A metric's rows that are means over the dimensions."""
    return rows(part, what, absent=True).filter(pl.col("concept") == MEAN).to_dicts()


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
