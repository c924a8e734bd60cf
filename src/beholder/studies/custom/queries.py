"""Queries about own prompts: gaps, slopes and interactions, as they were decided."""

from __future__ import annotations

import polars as pl

from beholder.chapter.numbers import Result
from beholder.chapter.queries import deciding_rows
from beholder.comparison.groups import REST
from beholder.core.results import WITHIN
from beholder.studies.custom.gaps import BALANCE, GAPS, KINDS

BASES = {gap.removesuffix("gap") + kind: base for base, gap in GAPS.items() for kind in KINDS}
"""What is measured, by the metric that says how it differs."""
BELIEF = "custom.probability"


def differences(part: pl.DataFrame, kind: str) -> list[Result]:
    """The rows that decide about a kind of difference; of gaps only the two groups farthest apart."""
    metrics = [gap.removesuffix("gap") + kind for gap in GAPS.values()]
    rows = [row for metric in metrics for row in deciding_rows(part, metric.removeprefix("custom.")).to_dicts()]
    return [row for row in rows if row["metric"] in metrics and row["against"] != REST]


def within(row: Result) -> str:
    """What a difference was measured within, in words; nothing where it is the plain one.

    >>> within({"variant": "within branch: actors"}), within({"variant": None})
    ('branch: actors', '')
    """
    return (row.get("variant") or "").removeprefix(WITHIN)


def overall(rows: list[Result]) -> list[Result]:
    """Those of all people; without those within a single stratum."""
    return [row for row in rows if ": " not in within(row)]


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


def imbalances(part: pl.DataFrame) -> dict[tuple[str, str], list[Result]]:
    """By attribute and other label that go together: shares of the label's most unequal value, group by group."""
    found = {}
    for (attribute, label), rows in part.filter(metric=BALANCE).group_by("subset", "concept", maintain_order=True):
        by_value = [own.to_dicts() for _, own in rows.group_by("template", maintain_order=True)]
        found[str(attribute), str(label)] = max(by_value, key=_range)
    return found


def _range(rows: list[Result]) -> float:
    shares = [float(row["value"]) for row in rows]
    return max(shares) - min(shares)
