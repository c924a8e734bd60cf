"""Perception's chapter: aggregated first, since a run has thousands of rows."""

from __future__ import annotations

from beholder.chapter.chapter import Chapter, Question
from beholder.studies.perception.charts import perception_figures
from beholder.studies.perception.findings import perception_findings
from beholder.studies.perception.planted import perception_planted
from beholder.studies.perception.tables import perception_published, perception_tables

TOPICS = {
    "judgements": "How groups are judged",
    "effects": "What moves the judgement",
    "curves": "Over age and smiling",
    "ranking": "Who comes first, who goes without saying",
    "neutral": "The neutral prompt",
    "confounds": "What else may be at work",
    "ratings": "Beside people's ratings",
}
QUESTIONS = {
    "variant": Question("Is this the published measure?", "judgements"),
    "effect": Question("Which attribute moves the judgement, all else the same?", "effects"),
    "interaction": Question("Does an attribute do the same for everyone?", "effects"),
    "gap": Question("How do groups of photographs differ?", "judgements"),
    "markedness": Question("Whom does the model treat as the default?", "ranking"),
    "ranking": Question("Who comes first in the model's rankings?", "ranking"),
    "neutral": Question("What does the neutral prompt take away?", "neutral"),
    "ratings": Question("Does the model order people as people do?", "ratings"),
}

CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=perception_findings,
    tables=perception_tables,
    figures=perception_figures,
    published=perception_published,
    planted=perception_planted,
)
