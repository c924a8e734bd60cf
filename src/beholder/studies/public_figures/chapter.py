"""The chapter of a study about public figures."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import Chapter, Question
from beholder.studies.public_figures.charts import public_figure_charts
from beholder.studies.public_figures.findings import public_figure_findings
from beholder.studies.public_figures.planted import planted_table
from beholder.studies.public_figures.published_rank import published_rank
from beholder.studies.public_figures.tables import public_figure_tables

TOPICS = {"association": "What the model takes people for", "gender": "Women and men", "identity": "Names and faces"}
QUESTIONS = {
    "planted": Question("Does the audit find what was planted in the reference model?", "planted"),
    "bias": Question("Are women and men taken for what they do equally often?", "gender"),
    "association": Question("Does the model know what people are?", "association"),
    "identity": Question("Does the model know people by name?", "identity"),
}


def limitations(part: pl.DataFrame) -> Iterator[str]:
    """What several ratios mean together."""
    ratios = part.filter(pl.col("metric").str.ends_with(".bias_ratio")).height
    if ratios > 1:
        yield (
            f"Each of the {ratios} ratios has its own 95 % interval: even if nothing were there, "
            "about one in twenty would exclude 1."
        )


CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=public_figure_findings,
    tables=public_figure_tables,
    figures=public_figure_charts,
    published=published_rank,
    planted=planted_table,
    limitations=limitations,
    glossary=("“Belief” is the model's probability among the prompts offered together.",),
)
