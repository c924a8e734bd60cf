"""Rows of own prompts of Beholder 0.1: the level, which stood in the note, in its column."""

from __future__ import annotations

import polars as pl


def upgraded(rows: pl.DataFrame) -> pl.DataFrame:
    """The level whose prompts compete."""
    level = pl.col("note").str.extract(r"prompts of level '(.*)'$")
    return rows.with_columns(template=pl.coalesce("template", level))
