"""Disparity's chapter: out of hundreds of concepts, those with the widest gaps come first."""

from __future__ import annotations

from beholder.chapter.chapter import Chapter, Question
from beholder.studies.disparity.charts import disparity_figures
from beholder.studies.disparity.findings import disparity_findings
from beholder.studies.disparity.planted import disparity_planted
from beholder.studies.disparity.tables import disparity_tables

TOPICS = {
    "means": "On average",
    "gaps": "The widest gaps",
    "calibration": "Calibration",
    "agreement": "Agreement with word vectors, other data sets and models",
    "causes": "Possible causes of the gaps",
    "images": "Image ids behind the gaps",
}
QUESTIONS = {
    "gaps": Question("Which concepts does the model recognise worse in images of one group?", "gaps"),
    "together": Question("Are gaps, taken together, wider than chance?", "gaps"),
    "mean": Question("Does recognition differ between groups on average?", "means"),
    "prevalence": Question("Which published gaps depend on how often a group shows the concept?", "gaps"),
    "calibration": Question("Is the model's confidence equally reliable for every group?", "calibration"),
    "words": Question("Do gaps point towards the group that word vectors put nearer to the concept?", "agreement"),
    "agreement": Question("Do gaps agree between data sets and between models?", "agreement"),
}

CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=disparity_findings,
    tables=disparity_tables,
    figures=disparity_figures,
    planted=disparity_planted,
)
