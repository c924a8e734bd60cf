"""Tables of own prompts: prompts down, groups across."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.numbers import Result, remarks
from beholder.chapter.table import INTERVALS, Table, labels, names, percent_cell
from beholder.prompts.prompt_set import ONE_LEVEL

NO_PROMPT = {"custom.association": "the right prompt", "custom.association_top1": "the right prompt comes first"}
"""Metrics about a whole level, and what their rows are called."""


def custom_tables(part: pl.DataFrame) -> Iterator[Table]:
    """For every level and attribute: prompts down, groups across. A row's `template` is its level."""
    rows = part.to_dicts()
    for level in dict.fromkeys(row["template"] for row in rows):
        of_level = [row for row in rows if row["template"] == level]
        for attribute in dict.fromkeys(row["subset"] for row in of_level if row["subset"]) or [None]:
            shown = [row for row in of_level if row["subset"] in (None, attribute)]
            yield _custom_table(part, level, attribute, shown)


def _custom_table(part: pl.DataFrame, level: str | None, attribute: str | None, rows: list[Result]) -> Table:
    groups = list(dict.fromkeys(row["group"] for row in rows))
    cell_of = {(row["model"], row["metric"], row["concept"], row["group"]): row for row in rows}
    counts = {group: max((row["n"] for row in rows if row["group"] == group), default=0) for group in groups}
    body = [
        [
            *names(part, model, NO_PROMPT.get(metric, concept or "")),
            *(percent_cell(cell_of.get((model, metric, concept, group))) for group in groups),
        ]
        for model, metric, concept in dict.fromkeys((row["model"], row["metric"], row["concept"]) for row in rows)
    ]
    return Table(
        ("Prompts" if level in (None, ONE_LEVEL) else f"Prompts of level {level}")
        + (f" by {attribute}" if attribute else ""),
        f"Mean share of belief among the prompts of the level, in per cent. {INTERVALS}",
        [*labels(part, "Prompt"), *(f"{_group_name(group)} (n = {counts[group]})" for group in groups)],
        body,
        len(labels(part, "Prompt")),
        tuple(dict.fromkeys(f"{_group_name(row['group'])}: {remarks(row)}" for row in rows if row["value"] is None)),
        "prompts",
    )


def _group_name(group: str | None) -> str:
    return "everyone" if group is None else group
