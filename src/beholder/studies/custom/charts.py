"""Charts of own prompts, one for each model, level and attribute."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chart_parts import dots, gap_title, value_of
from beholder.chapter.figure import Figure, sentence, whose
from beholder.chapter.table import rows_of
from beholder.prompts.prompt_set import ONE_LEVEL


def custom_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Prompts by group where groups were compared, else the prompts alone."""
    rows = [row for row in rows_of(results, "probability") if row["value"] is not None]
    keys = dict.fromkeys((row["model"], row["template"], row["subset"]) for row in rows)
    by_group = [key for key in keys if key[2]] or list(keys)
    for number, (model, level, attribute) in enumerate(by_group, start=1):
        own = [row for row in rows if (row["model"], row["template"], row["subset"]) == (model, level, attribute)]
        what = "prompts" if level in (None, ONE_LEVEL) else f"prompts of level {level}"
        what += f" by {attribute}" if attribute else ""
        result = gap_title(own) if attribute else f"most to “{max(own, key=value_of)['concept']}”"
        yield Figure(
            f"prompts-{number}",
            sentence(whose(rows, model), f"{what}: {result}"),
            "Mean share of belief among the prompts of the level, with 95 % intervals.",
            dots(own),
            "prompts",
        )
