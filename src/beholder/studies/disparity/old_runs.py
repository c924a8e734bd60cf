"""Disparity's rows of Beholder 0.1: a bin's mean confidence, which stood in its note, in its column."""

from __future__ import annotations

import polars as pl


def upgraded(rows: pl.DataFrame) -> pl.DataFrame:
    """The mean confidence of each bin of a reliability diagram."""
    confidence = pl.col("note").str.extract(r"mean confidence ([0-9.]+)").cast(pl.Float64, strict=False)
    bins = pl.col("metric") == "disparity.reliability"
    return rows.with_columns(expected=pl.when(bins).then(confidence).otherwise("expected"))
