"""The chapter of a study about public figures."""

from __future__ import annotations

from beholder.chapter.chapter import Chapter, Question
from beholder.studies.public_figures.charts import public_figure_charts
from beholder.studies.public_figures.findings import public_figure_findings
from beholder.studies.public_figures.published import published_rank
from beholder.studies.public_figures.tables import public_figure_tables

TOPICS = {
    "gender": "Women and men",
    "association": "What the model believes people to be",
    "identity": "Names and faces",
    "scale": "Size and training data",
}
QUESTIONS = {
    "bias": Question("Does the model believe in the occupation of women as much as in that of men?", "gender"),
    "occupations": Question("In which wrong occupations does the model believe more for women or for men?", "gender"),
    "association": Question("Does the model recognise a person, their occupation and their specialty?", "association"),
    "identity": Question("Does the model know people by name?", "identity"),
    "scale": Question("Do larger models, or models with more training data, do better?", "scale"),
}


CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=public_figure_findings,
    tables=public_figure_tables,
    figures=public_figure_charts,
    published=published_rank,
    glossary=("“Belief” is the probability that the model gives to a prompt among those offered together.",),
)
