"""The chapter on a user's own prompts."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import Chapter, Figure, Question, rows_of, sentence, whose
from beholder.chapter.chart_parts import dots, value_of
from beholder.chapter.numbers import percent, plural
from beholder.comparison.verdicts import DIFFERENCE
from beholder.prompts.prompt_set import ONE_LEVEL
from beholder.studies.custom.findings import BASES, BELIEF, custom_findings, differences, mean_of
from beholder.studies.custom.tables import custom_tables


def custom_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Prompts by group where groups were compared, else the prompts alone."""
    rows = [row for row in rows_of(results, "probability") if row["value"] is not None]
    keys = dict.fromkeys((row["model"], row["template"], row["subset"]) for row in rows)
    by_group = [key for key in keys if key[2]] or list(keys)
    for number, (model, level, attribute) in enumerate(by_group, start=1):
        own = [row for row in rows if (row["model"], row["template"], row["subset"]) == (model, level, attribute)]
        what = "prompts" if level in (None, ONE_LEVEL) else f"prompts of level {level}"
        what += f" by {attribute}" if attribute else ""
        result = f"most to “{max(own, key=value_of)['concept']}”"
        if attribute:
            result = _gap_title(results.filter(model=model), level, attribute)
        yield Figure(
            f"prompts-{number}",
            sentence(whose(rows, model), f"{what}: {result}"),
            "Mean share of belief among the prompts of the level, with each group's own 95 % interval. A difference is "
            "found only where it is wider than the widest of all prompts and groups would be by chance.",
            dots(own),
            "prompts",
        )


def _gap_title(results: pl.DataFrame, level: str | None, attribute: str) -> str:
    """The widest gap that was found."""
    gaps = [row for row in differences(results, "gap") if BASES[row["metric"]] == BELIEF]
    gaps = [row for row in gaps if (row["template"], row["subset"]) == (level, attribute)]
    gaps = [row for row in gaps if row["verdict"] == DIFFERENCE]
    if not gaps:
        return "no gap was found"
    widest = max(gaps, key=lambda row: abs(row["value"]))
    ends = (f"{plural(end)} {percent(mean_of(results, widest, end))}" for end in (widest["group"], widest["against"]))
    return f"widest gap at “{widest['concept']}”, {' and '.join(ends)}"


# The chapter on a user's own prompts

TOPICS = {"prompts": "Prompt by prompt"}
QUESTIONS = {
    "custom": Question("Which prompts does the model rate differently between groups?", "prompts"),
    "balance": Question("Which other labels go together with those that are compared?", "prompts"),
}

CHAPTER = Chapter(
    topics=TOPICS, questions=QUESTIONS, findings=custom_findings, tables=custom_tables, figures=custom_figures
)
