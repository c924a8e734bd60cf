"""Perception's chapter of the report: first what can be said in a sentence, since a run has thousands of rows."""

from __future__ import annotations

from beholder.chapter.chapter import Chapter, Question
from beholder.studies.perception.charts import perception_figures
from beholder.studies.perception.findings import perception_findings
from beholder.studies.perception.planted import perception_planted
from beholder.studies.perception.tables import perception_published, perception_tables

TOPICS = {
    "judgements": "How groups are judged",
    "effects": "What changes the judgement",
    "curves": "Judgements over age and smiling",
    "ranking": "Who comes first, and who is the default",
    "neutral": "The neutral prompt",
    "confounds": "What else may explain the judgement",
    "ratings": "Compared with people's ratings",
}
QUESTIONS = {
    "variant": Question("Is this the published measure?", "judgements"),
    "effect": Question("Which attribute changes the judgement when all else stays the same?", "effects"),
    "interaction": Question("Does an attribute have the same effect on every group?", "effects"),
    "stand_out": Question("Does the curve of one group stand out from those of the others?", "curves"),
    "gap": Question("How differently does the model judge groups of photographs?", "judgements"),
    "markedness": Question("Which group does the model treat as the default?", "ranking"),
    "ranking": Question("Which group comes first in the model's rankings?", "ranking"),
    "neutral": Question("What changes when the neutral prompt is subtracted?", "neutral"),
    "ratings": Question("Does the model put faces in the same order as people do?", "ratings"),
}

CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=perception_findings,
    tables=perception_tables,
    figures=perception_figures,
    published=perception_published,
    planted=perception_planted,
    glossary=("Judgements are cosines times 100: only differences between them mean something.",),
)
