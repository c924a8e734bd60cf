"""Queries about captions: which ratios decide, and how many differences were found."""

from __future__ import annotations

import polars as pl

from beholder.chapter.numbers import Result
from beholder.chapter.table import rows_of
from beholder.comparison import DIFFERENCE
from beholder.studies.exposure.ratios import TYPICAL


def typical_ratios(results: pl.DataFrame) -> list[Result]:
    """Women over men in geometric means: each branch, and over all branches at equal branches."""
    return [row for row in rows_of(results, "ratio") if row["concept"] == TYPICAL]


def found(row: Result) -> bool:
    """Whether the comparison found a difference."""
    return bool(row["verdict"] == DIFFERENCE)
