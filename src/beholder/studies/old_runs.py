"""Run folders of Beholder 0.1: its results with the columns that came later.

0.1 wrote a pair of groups into `group` and other data into `note`. This is the one place, with the `upgrade` of some
studies, that reads data out of text.
"""

from __future__ import annotations

import re

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
    pair = pl.col("metric").is_in(paired) & pl.col("against").is_null() & pl.col("group").is_not_null()
    known = frozenset(results.filter(~pair)["group"].drop_nulls())
    sides = {text: split_pair(text, known) for text in results.filter(pair)["group"].unique()}
    first, second = ({text: both[side] for text, both in sides.items()} for side in (0, 1))
    group = pl.col("group")
    return results.with_columns(
        group=pl.when(pair).then(group.replace(first)).otherwise(group),
        against=pl.when(pair)
        .then(group.replace_strict(second, default=None, return_dtype=pl.String))
        .otherwise("against"),
    )


def split_pair(text: str, known: frozenset[str]) -> tuple[str, str | None]:
    """Both sides of a pair: those that are names of groups elsewhere, else those around the first separator.

    >>> split_pair("60 and over over 20-29", frozenset({"60 and over", "20-29"}))
    ('60 and over', '20-29')
    """
    ways = [
        (text[: match.start()], text[match.start() + len(separator) :])
        for separator in SEPARATORS
        for match in re.finditer(f"(?={separator})", text)  # overlapping ones too
    ]
    named = [way for way in ways if known.issuperset(way)]
    return next(iter(named or ways), (text, None))


def _equivalences(results: pl.DataFrame) -> pl.DataFrame:
    """Verdict and δ of tests of equivalence, which stood in their notes."""
    tested = pl.col("metric").str.ends_with(".equivalence")
    delta = pl.col("note").str.extract(r"δ = ([0-9.e+-]+)").cast(pl.Float64, strict=False)
    return results.with_columns(
        verdict=pl.when(tested).then(pl.col("note").str.extract(r"^([^;]+);")).otherwise("verdict"),
        delta=pl.when(tested).then(delta).otherwise("delta"),
    )
