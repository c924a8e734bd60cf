"""Queries about own prompts: gaps, slopes and interactions, and which of them are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from beholder.chapter.numbers import Result, excludes
from beholder.metrics.multiplicity import ALPHA
from beholder.studies.custom.gaps import GAPS, KINDS, REST

BASES = {gap.removesuffix("gap") + kind: base for base, gap in GAPS.items() for kind in KINDS}
"""What is measured, by the metric that says how it differs."""
BELIEF = "custom.probability"


def kind_of(row: Mapping[str, Any]) -> str:
    """Which kind of difference a row is about: `gap`, `slope`, `interaction` or `equivalence`; else nothing."""
    return next((kind for kind in KINDS if row["metric"] in BASES and row["metric"].endswith(kind)), "")


def differences(part: pl.DataFrame, kind: str) -> list[Result]:
    """The rows of a kind of difference that have a value; of gaps only the highest against the lowest group."""
    rows = [row for row in part.to_dicts() if kind_of(row) == kind and row["value"] is not None]
    return [row for row in rows if row["against"] != REST]


def shown(row: Result) -> bool:
    """Whether a difference is shown: a corrected p of at most 0.05, and an interval without 0."""
    return excludes(row, 0.0) and row["p_value"] is not None and bool(row["p_value"] <= ALPHA)


def mean_of(part: pl.DataFrame, row: Result, group: str) -> float | None:
    """The mean of one of the groups that a gap compares."""
    where = {
        "metric": BASES[row["metric"]],
        "group": group,
        **{key: row[key] for key in ("model", "subset", "concept")},
    }
    same = part.filter(*(pl.col(key) == value for key, value in where.items() if value is not None))
    same = same.filter(pl.col("template").eq_missing(pl.lit(row["template"], pl.String)))
    return same["value"][0] if same.height else None
