"""Run folders of Beholder 0.1: its results with the columns that came later.

0.1 wrote a pair of groups into `group` and other data into `note`. This is the one place, with the `upgrade` of some
studies, that reads data out of text.
"""

from __future__ import annotations

import polars as pl

from beholder.studies import STUDIES

SEPARATORS = (" over ", " less ", " with ")


def upgraded(results: pl.DataFrame) -> pl.DataFrame:
    """The results of a run of 0.1 as they would be written today."""
    results = split_pairs(
        results, [metric.name for study in STUDIES.values() for metric in study.metrics if metric.paired]
    )
    results = _equivalences(results)
    for name, study in STUDIES.items():
        upgrade, own = study.part("upgrade"), pl.col("benchmark") == name
        if upgrade and results.filter(own).height:
            results = pl.concat([results.filter(~own), upgrade(results.filter(own))])
    return results


def split_pairs(results: pl.DataFrame, paired: list[str]) -> pl.DataFrame:
    """Pairs of groups, written as `A over B` or `A less B`, with a column for each."""
    first, second = pl.col("group"), pl.lit(None, pl.String)
    for separator in SEPARATORS:
        parts = pl.col("group").str.splitn(separator, 2)
        there = second.is_null() & parts.struct[1].is_not_null()
        first, second = (
            pl.when(there).then(parts.struct[0]).otherwise(first),
            pl.when(there).then(parts.struct[1]).otherwise(second),
        )
    pair = pl.col("metric").is_in(paired) & pl.col("against").is_null() & second.is_not_null()
    return results.with_columns(
        group=pl.when(pair).then(first).otherwise("group"), against=pl.when(pair).then(second).otherwise("against")
    )


def _equivalences(results: pl.DataFrame) -> pl.DataFrame:
    """Verdict and δ of tests of equivalence, which stood in their notes."""
    tested = pl.col("metric").str.ends_with(".equivalence")
    delta = pl.col("note").str.extract(r"δ = ([0-9.e+-]+)").cast(pl.Float64, strict=False)
    return results.with_columns(
        verdict=pl.when(tested).then(pl.col("note").str.extract(r"^([^;]+);")).otherwise("verdict"),
        delta=pl.when(tested).then(delta).otherwise("delta"),
    )
