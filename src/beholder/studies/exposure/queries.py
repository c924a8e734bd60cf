"""Queries about captions: which ratios there are, and what counts as shown."""

from __future__ import annotations

import polars as pl

from beholder.chapter.numbers import Result, excludes
from beholder.chapter.table import rows_of
from beholder.metrics.multiplicity import ALPHA
from beholder.studies.exposure.ratios import RATIO, TYPICAL


def typical_ratios(results: pl.DataFrame) -> list[Result]:
    """Women over men in geometric means: each branch, and over all branches at equal branches."""
    return [row for row in rows_of(results, "ratio") if row["concept"] == TYPICAL]


def shown(row: Result) -> bool:
    """Whether an effect is shown: the interval leaves out the landmark, and a ratio's corrected p is at most 0.05."""
    if row["metric"] == RATIO:
        return excludes(row, 1.0) and row["p_value"] is not None and bool(row["p_value"] <= ALPHA)
    return excludes(row, 0.0)
