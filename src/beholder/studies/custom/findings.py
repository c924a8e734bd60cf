"""Findings about own prompts."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding
from beholder.chapter.numbers import Result, decimals_for, log_distance, percent, remarks, uncertainty

MOST_CUSTOM = 4


# Own prompts


def custom_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """The prompts whose intervals lie farthest apart between two groups of one attribute."""
    found = []
    rows = part.filter(pl.col("metric") == "custom.probability").drop_nulls(["subset", "low"])
    for _, cells in rows.group_by(["subset", "concept", "note"], maintain_order=True):
        ordered = cells.sort("value").to_dicts()
        if len(ordered) > 1 and ordered[0]["high"] < ordered[-1]["low"]:
            found.append(_apart(ordered[0], ordered[-1]))
    yield from sorted(found, key=lambda f: -f.effect)[:MOST_CUSTOM]


def _apart(least: Result, most: Result) -> Finding:
    def said(row: Result) -> str:
        places = decimals_for(row)
        return f"{percent(row['value'], places)} for {row['group']} ({uncertainty(row, decimals=places)})"

    sentence = f"“{most['concept']}” gets {said(most)} and {said(least)}, {remarks(most)}: the intervals do not meet."
    headline = f"“{most['concept']}” differs by {most['subset']}"
    effect = log_distance(most["value"], max(least["value"], 1e-6))
    return finding(most, "custom", headline, sentence, shown=True, effect=effect)
