"""Perception's rows, selected for a reader. Tables in, small tables out."""

from __future__ import annotations

import polars as pl

from beholder.chapter.numbers import Result
from beholder.chapter.queries import deciding_rows, metric_rows
from beholder.comparison.family import DIFFERENCE
from beholder.studies.perception import phrases
from beholder.studies.perception.scores import EVERYONE, MEAN

PROTECTED = ("race", "skin_tone", "gender", "age")


def finest(part: pl.DataFrame) -> str:
    """The finest grouping there is: `race × gender`, an attribute alone, or everyone."""
    groupings = list(dict.fromkeys(metric_rows(part, "delta_cosine")["subset"]))
    return groupings[-1] if groupings else EVERYONE


def grouping_of(part: pl.DataFrame) -> dict[str, str]:
    """The grouping that each group belongs to."""
    return dict(metric_rows(part, "delta_cosine").select("group", "subset").iter_rows())


def dimensions(part: pl.DataFrame) -> list[str]:
    """The dimensions, in their order."""
    return list(dict.fromkeys(metric_rows(part, "delta_cosine")["concept"]))


def unit(part: pl.DataFrame) -> str:
    """What the scores are."""
    units = metric_rows(part, "delta_cosine")["unit"]
    return str(units[0]) if len(units) else "cosine"


def printed_unit(part: pl.DataFrame) -> str:
    """The same as printed."""
    return phrases.PRINTED.get(unit(part), unit(part))


def found(row: Result | None) -> bool:
    """Whether the comparison found a difference."""
    return row is not None and row["verdict"] == DIFFERENCE


def beyond(row: Result) -> float:
    """How far a value is from its landmark, the value of no effect."""
    return float(row["value"] - (row["landmark"] or 0.0))


def decided(part: pl.DataFrame, metric: str, **where: str) -> list[Result]:
    """The rows of a metric that decide, those farthest from their landmarks first."""
    rows = deciding_rows(part, metric).filter(**where).to_dicts()
    return sorted(rows, key=lambda row: -abs(beyond(row)))


def by_place(part: pl.DataFrame, metric: str) -> dict[tuple[str | None, ...], Result]:
    """The rows of a metric by model, subset, groups and concept."""
    return {place(row): row for row in metric_rows(part, metric).to_dicts()}


def place(row: Result) -> tuple[str | None, ...]:
    """What a row is about, whatever its metric."""
    return tuple(row[name] for name in ("model", "subset", "group", "against", "concept"))


def over_dimensions(part: pl.DataFrame, metric: str) -> list[Result]:
    """A metric's rows that are means over the dimensions."""
    return metric_rows(part, metric, absent=True).filter(concept=MEAN).to_dicts()


def induced(part: pl.DataFrame) -> list[Result]:
    """Attributes by the median difference they make, the largest first, each with its `box` of quantiles."""
    medians = metric_rows(part, "induced_variation").filter(concept=MEAN).sort("value", descending=True)
    table = metric_rows(part, "induced_variation_quantile").filter(concept=MEAN)
    quantiles = {(row["subset"], row["template"]): row["value"] for row in table.to_dicts()}
    ends = ("0.05", "0.25", "0.75", "0.95")
    return [{**row, "box": [quantiles.get((row["subset"], end)) for end in ends]} for row in medians.to_dicts()]
