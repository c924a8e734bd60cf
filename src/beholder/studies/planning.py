"""What the studies' plans share: how large an effect can be found with this data set and these groups.

Spreads come from an earlier run where one is named, else they are assumed, and every row says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from beholder.core.results import Row
from beholder.metrics.power import POWER

NORMAL = 1.959963984540054


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of a plan."""

    data: Path | None = None
    dataset: str | None = None
    power: float = POWER
    effect: float | None = None
    """The effect that should be found; in probability for a gap, 1 − b for a ratio."""
    results: pl.DataFrame | None = None
    """An earlier run, for its spreads."""


def plan_rows(row: Row, needed: float | None, options: PlanOptions) -> Iterator[Row]:
    """The row, and how many images the effect takes where one was named."""
    yield row
    if needed is not None:
        note = f"to find {options.effect:g} with {100 * options.power:g} % power; {row.note}"
        yield row._replace(metric="plan.images_needed", value=float(np.ceil(needed)), unit="images", note=note)


def of_run(options: PlanOptions, metric: str, **place: str) -> pl.DataFrame | None:
    """The rows of a metric in the earlier run; None without one."""
    if options.results is None:
        return None
    return options.results.filter(pl.col("metric").str.ends_with(f".{metric}")).filter(**place)


def group_sizes(images: pl.DataFrame, attribute: str) -> list[int]:
    """How many images each group has that has more than one."""
    return sorted(int(n) for n in images[attribute].drop_nulls().value_counts()["count"] if n > 1)


def describe_groups(sizes: list[int]) -> str:
    """How many groups of which sizes."""
    spread = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
    return f"{len(sizes)} groups of {spread}"
