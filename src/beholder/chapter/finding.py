"""Finding: one thing a reader should take away, in plain words with its uncertainty."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from beholder.chapter.numbers import Result


class Finding(NamedTuple):
    """One thing a reader should take away about one model."""

    benchmark: str
    dataset: str
    model: str
    kind: str
    headline: str
    sentence: str
    shown: bool
    """Whether the intervals bear a difference out; a finding may also be that none is shown."""
    effect: float
    """Distance from the landmark (1, chance, the planted value) in e-folds: for ordering within a kind."""
    metric: str = ""
    """The metric of the row that it speaks of, for the way back to the results."""


def valued(part: pl.DataFrame, metric: str) -> list[Result]:
    """The rows of one metric that have a value."""
    return part.filter(pl.col("metric").str.ends_with(f".{metric}") & pl.col("value").is_not_null()).to_dicts()


def finding(row: Result, kind: str, headline: str, sentence: str, *, shown: bool, effect: float = 0.0) -> Finding:
    whose = row["benchmark"], row["dataset"], row["model"]
    return Finding(*whose, kind, headline, sentence, shown, effect, row.get("metric") or "")
