"""The chapter on a user's own prompts."""

from __future__ import annotations

from beholder.chapter.chapter import Chapter, Question
from beholder.studies.custom.charts import custom_figures
from beholder.studies.custom.findings import custom_findings
from beholder.studies.custom.tables import custom_tables

TOPICS = {"prompts": "Prompt by prompt"}
QUESTIONS = {
    "custom": Question("Which prompts does the model rate differently between groups?", "prompts"),
    "balance": Question("Which other labels go together with those that are compared?", "prompts"),
}

CHAPTER = Chapter(
    topics=TOPICS, questions=QUESTIONS, findings=custom_findings, tables=custom_tables, figures=custom_figures
)
