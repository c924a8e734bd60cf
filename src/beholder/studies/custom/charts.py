"""Charts of own prompts, a chart for each model, level and attribute."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chart_parts import dots, gap_title, value_of
from beholder.chapter.figure import Figure, sentence, whose
from beholder.chapter.table import rows_of
from beholder.studies.custom.tables import level_of


def custom_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Own prompts by group, a chart a model, level and attribute."""
    rows = [row for row in rows_of(results, "probability") if row["benchmark"] == "custom" and row["value"] is not None]
    keys = dict.fromkeys((row["model"], level_of(row), row["subset"]) for row in rows)
    attributes = {subset for _, _, subset in keys if subset}
    for number, (model, level, subset) in enumerate(key for key in keys if key[2] or not attributes):
        mine = [row for row in rows if (row["model"], level_of(row), row["subset"]) == (model, level, subset)]
        seen = gap_title(mine) if subset else f"most to “{max(mine, key=value_of)['concept']}”"
        yield Figure(
            f"prompts-{number + 1}",
            sentence(whose(rows, model), f"{level or 'prompts'}{f' by {subset}' if subset else ''}: {seen}"),
            "Mean share of belief among the prompts of the level, with 95 % intervals.",
            dots(mine),
            "prompts",
        )
