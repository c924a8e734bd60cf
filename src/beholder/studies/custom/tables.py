"""Tables of own prompts: prompts down, groups across."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from beholder.chapter.numbers import Result, remarks
from beholder.chapter.table import INTERVALS, Table, labels, names, percent_cell
from beholder.prompts.prompt_set import ONE_LEVEL

# Own prompts

_LEVEL = re.compile(r"prompts of level '(.*)'$")


def level_of(row: Result) -> str:
    """The level whose prompts share the belief; the note says it."""
    found = _LEVEL.search(row["note"] or "")
    return found[1] if found else ""


def custom_tables(part: pl.DataFrame) -> Iterator[Table]:
    """For every level and attribute: prompts down, groups across."""
    rows = part.to_dicts()
    for level in dict.fromkeys(map(level_of, rows)):
        mine = [row for row in rows if level_of(row) == level]
        for attribute in dict.fromkeys(row["subset"] for row in mine if row["subset"]) or [None]:
            yield _custom_table(part, level, attribute, [row for row in mine if row["subset"] in (None, attribute)])


def _custom_table(part: pl.DataFrame, level: str, attribute: str | None, rows: list[Result]) -> Table:
    groups = list(dict.fromkeys(row["group"] for row in rows))
    cell_of = {(row["model"], row["metric"], row["concept"], row["group"]): row for row in rows}
    counts = {group: max((row["n"] for row in rows if row["group"] == group), default=0) for group in groups}
    body = [
        [
            *names(part, model, _custom_label(metric, concept)),
            *(percent_cell(cell_of.get((model, metric, concept, group))) for group in groups),
        ]
        for model, metric, concept in dict.fromkeys((row["model"], row["metric"], row["concept"]) for row in rows)
    ]
    return Table(
        ("Prompts" if level in ("", ONE_LEVEL) else f"Prompts of level {level}")
        + (f" by {attribute}" if attribute else ""),
        f"Mean share of belief among the prompts of the level, in per cent. {INTERVALS}",
        [*labels(part, "Prompt"), *(f"{group or 'everyone'} (n = {counts[group]})" for group in groups)],
        body,
        len(labels(part, "Prompt")),
        tuple(dict.fromkeys(f"{row['group']}: {remarks(row)}" for row in rows if row["value"] is None)),
        "prompts",
    )


def _custom_label(metric: str, concept: str | None) -> str:
    what = {"custom.association": "the right prompt", "custom.association_top1": "the right prompt comes first"}
    return what.get(metric, concept or "")
