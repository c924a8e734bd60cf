"""Findings about own prompts."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding
from beholder.chapter.numbers import Result, decimals_for, log_distance, percent, uncertainty
from beholder.prompts.prompt_set import ONE_LEVEL

MOST_FINDINGS = 4


def custom_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """The prompts whose intervals lie farthest apart between two groups of one attribute."""
    findings = []
    rows = part.filter(pl.col("metric") == "custom.probability").drop_nulls(["subset", "low"])
    for _, groups in rows.group_by(["subset", "concept", "template"], maintain_order=True):
        ordered = groups.sort("value").to_dicts()
        if len(ordered) > 1 and ordered[0]["high"] < ordered[-1]["low"]:
            findings.append(_apart(ordered[0], ordered[-1]))
    yield from sorted(findings, key=lambda each: -each.effect)[:MOST_FINDINGS]


def _apart(least: Result, most: Result) -> Finding:
    prompt, level = most["concept"], most["template"]
    among = "the prompts" if level in (None, ONE_LEVEL) else f"the prompts of level “{level}”"
    sentence = f"Among {among}, “{prompt}” gets {_share(most)} and {_share(least)}. The intervals do not meet."
    headline = f"“{prompt}” differs by {most['subset']}"
    effect = log_distance(most["value"], max(least["value"], 1e-6))
    return finding(most, "custom", headline, sentence, shown=True, effect=effect, more=[least])


def _share(row: Result) -> str:
    places = decimals_for(row)
    return f"{percent(row['value'], places)} for {row['group']} ({uncertainty(row, decimals=places)})"
