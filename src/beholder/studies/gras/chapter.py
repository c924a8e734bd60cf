"""GRAS's chapter: aggregated first, since a full run has 20,000 rows."""

from __future__ import annotations

from beholder.chapter.chapter import Chapter, Question
from beholder.studies.gras.charts import gras_figures
from beholder.studies.gras.findings import gras_findings
from beholder.studies.gras.planted import gras_planted
from beholder.studies.gras.tables import gras_published, gras_tables

TOPICS = {
    "score": "The score, and what it says without bias",
    "gaps": "The largest gaps",
    "traits": "Trait by trait",
    "valence": "Positive and negative traits",
    "tones": "Over the skin tones",
    "crossed": "Where labels cross",
    "wording": "One question in several wordings",
}
QUESTIONS = {
    "planted": Question("Does the audit find what was planted in the reference model?", "planted"),
    "variant": Question("Is this the published measure?", "score"),
    "answers": Question("Does the model answer the questions?", "wording"),
    "score": Question("How many traits does the model attribute unequally?", "score"),
    "gap": Question("Which trait differs most between groups?", "gaps"),
    "intersection": Question("Which crossing of labels is favoured?", "crossed"),
    "wording": Question("Does the answer depend on the wording?", "wording"),
    "refusal": Question("About whom does the model refuse to answer?", "score"),
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
)
