"""GRAS's rows of Beholder 0.1: what stood in their notes, in its columns."""

from __future__ import annotations

import polars as pl


def upgraded(rows: pl.DataFrame) -> pl.DataFrame:
    """The expected counts, and which models were measured with a variant."""
    text = "not the published measure"
    score = (pl.col("metric") == "gras.bias_score") & pl.col("note").str.contains(text, literal=True)
    models = rows.filter(score)["model"].unique().to_list()
    expected = pl.col("note").str.extract(r"([0-9.]+) expected without any bias").cast(pl.Float64, strict=False)
    return rows.with_columns(
        expected=pl.coalesce("expected", expected),
        variant=pl.when(pl.col("model").is_in(models)).then(pl.lit(text)).otherwise("variant"),
    )
