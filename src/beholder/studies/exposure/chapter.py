"""The chapter on captions: who is named, which words occur, and whether a model knows the people that are named."""

from __future__ import annotations

from beholder.chapter.chapter import Chapter, Question
from beholder.chapter.numbers import listed
from beholder.studies.exposure.charts import exposure_figures
from beholder.studies.exposure.findings import exposure_findings
from beholder.studies.exposure.tables import exposure_tables

TOPICS = {"named": "Who is named", "words": "Which words occur", "known": "Named and known"}
QUESTIONS = {
    "named": Question("Are women named as often as men?", "named"),
    "words": Question("How often do captions say “actress” and “actor”?", "words"),
    "known": Question("Does a model know the people best that captions name most?", "known"),
    "gap": Question("Does a model know women and men equally well by name?", "known"),
}


def page_title(names: list[str]) -> str:
    """The captions come first, then the models that are compared with them."""
    title = f"Who is named in {names[0]}"
    return f"{title}, compared with what {listed(names[1:])} knows" if names[1:] else title


CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=exposure_findings,
    tables=exposure_tables,
    figures=exposure_figures,
    page_title=page_title,
)
