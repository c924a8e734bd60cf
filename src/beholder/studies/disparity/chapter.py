"""Disparity's chapter: of hundreds of concepts, those with the widest gaps come first."""

from __future__ import annotations

from beholder.chapter.chapter import Chapter, Question
from beholder.studies.disparity.charts import disparity_figures
from beholder.studies.disparity.findings import disparity_findings
from beholder.studies.disparity.planted import disparity_planted
from beholder.studies.disparity.tables import disparity_tables

TOPICS = {
    "means": "On average",
    "gaps": "The largest gaps",
    "calibration": "What a confidence means",
    "agreement": "Beside other data sets and models",
    "causes": "What may lie behind the gaps",
    "images": "Images, by their ids",
}
QUESTIONS = {
    "gaps": Question("For which concepts does recognition differ?", "gaps"),
    "mean": Question("Does recognition differ on average?", "means"),
    "prevalence": Question("Which published gaps are gaps of prevalence?", "gaps"),
    "calibration": Question("Does a confidence mean the same for everyone?", "calibration"),
    "words": Question("Do gaps point where word vectors do?", "agreement"),
    "agreement": Question("Do gaps agree with other data sets and models?", "agreement"),
}

CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=disparity_findings,
    tables=disparity_tables,
    figures=disparity_figures,
    planted=disparity_planted,
)
