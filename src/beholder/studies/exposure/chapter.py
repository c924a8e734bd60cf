"""The chapter on captions: who is named, which words are said, and whether a model knows whom captions name."""

from __future__ import annotations

from beholder.chapter.chapter import Chapter, Question
from beholder.studies.exposure.charts import exposure_figures
from beholder.studies.exposure.findings import exposure_findings
from beholder.studies.exposure.tables import exposure_tables

TOPICS = {"named": "Who is named", "said": "Which words are said", "known": "Named and known"}
QUESTIONS = {
    "named": Question("Are women named as often as men?", "named"),
    "said": Question("Which words are said?", "said"),
    "known": Question("Does a model know whom captions name?", "known"),
}

CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=exposure_findings,
    tables=exposure_tables,
    figures=exposure_figures,
    page_title=lambda names: " beside ".join([f"Who is named in {names[0]}", *names[1:]]),
)
