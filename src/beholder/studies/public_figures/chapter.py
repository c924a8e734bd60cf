"""The chapter of a study about public figures."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import Chapter, Question
from beholder.chapter.queries import metric_rows
from beholder.studies.public_figures.charts import public_figure_charts
from beholder.studies.public_figures.findings import public_figure_findings
from beholder.studies.public_figures.published_rank import published_rank
from beholder.studies.public_figures.tables import public_figure_tables

TOPICS = {
    "gender": "Women and men",
    "association": "What the model takes people for",
    "identity": "Names and faces",
    "scale": "Size and training data",
}
QUESTIONS = {
    "bias": Question("Does the model recognise the occupation of women as often as that of men?", "gender"),
    "occupations": Question("Which wrong occupations does the model give to women or to men more often?", "gender"),
    "association": Question("Does the model recognise a person, their occupation and their specialty?", "association"),
    "identity": Question("Does the model know people by name?", "identity"),
    "scale": Question("Do larger models, or models with more training data, do better?", "scale"),
}


def limitations(part: pl.DataFrame) -> Iterator[str]:
    """What several ratios mean together."""
    ratios = metric_rows(part, "bias_ratio").drop_nulls(["low", "high"]).height
    if ratios > 1:
        yield (
            f"Each of the {ratios} ratios has its own 95 % interval: without any difference, "
            "about one in twenty would exclude 1."
        )


CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=public_figure_findings,
    tables=public_figure_tables,
    figures=public_figure_charts,
    published=published_rank,
    limitations=limitations,
    glossary=("“Belief” is the probability that the model gives to a prompt among those offered together.",),
)
