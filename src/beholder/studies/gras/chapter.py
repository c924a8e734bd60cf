"""GRAS's chapter of the report. It aggregates first, because a full run has 20,000 rows."""

from __future__ import annotations

from beholder.chapter.chapter import Chapter, Question
from beholder.studies.gras.charts import gras_figures
from beholder.studies.gras.findings import gras_findings
from beholder.studies.gras.planted import gras_planted
from beholder.studies.gras.tables import gras_published, gras_tables

TOPICS = {
    "gaps": "The largest gaps",
    "score": "The score, and that of shuffled labels",
    "traits": "Trait by trait",
    "valence": "Positive and negative traits",
    "tones": "P(Yes) by skin tone",
    "crossed": "Intersections of gender, race and age",
    "wording": "The same question in several wordings",
}
QUESTIONS = {
    "planted": Question("Does the audit find the associations planted in the reference model?", "planted"),
    "variant": Question("Is this the published measure?", "score"),
    "answers": Question("Does the model answer with yes or no?", "wording"),
    "score": Question("For how many traits do the answers differ between groups?", "score"),
    "gap": Question("Which trait differs most between groups?", "gaps"),
    "valence": Question("Which groups get more positive or more negative traits?", "valence"),
    "intersection": Question("Which intersections get more positive and fewer negative traits?", "crossed"),
    "wording": Question("Do the differences between groups depend on the wording?", "wording"),
    "sensitive": Question("Does the probability of yes itself depend on the wording?", "wording"),
    "refusal": Question("Does the model refuse to answer about some groups more often?", "score"),
    "absent": Question("Which attributes could not be compared?", "score"),
}

CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=gras_findings,
    tables=gras_tables,
    figures=gras_figures,
    published=gras_published,
    planted=gras_planted,
    glossary=("In GRAS a point is a hundredth of the probability of yes, P(Yes).",),
)
