"""Disparity's chapter: out of hundreds of concepts, those with the widest gaps come first."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import Chapter, Question
from beholder.chapter.numbers import drawn
from beholder.chapter.queries import metric_rows
from beholder.studies.disparity import queries
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

SOURCES = {
    "coco": "Groups come from the words of annotators' captions",
    "visual-genome": "Groups come from the words that annotators gave to the people they saw",
}


def limitations(part: pl.DataFrame) -> Iterator[str]:
    """What these rows cannot say; each sentence only where it applies."""
    dataset, groups = str(part["dataset"][0]), queries.groups(part)
    if dataset in SOURCES:
        names = ", ".join(f"“{group}”" for group in groups)
        yield (
            f"{SOURCES[dataset]}. They are perceived; only images in which exactly one of {names} is named are used."
        )
    if not drawn(dataset):
        yield "A concept that annotators did not mark counts as absent."
    gap = "A gap is a property of a model on these images."
    if metric_rows(part, "area_gap").height:
        gap += (
            " Objects may be smaller, rarer or of another kind in the images of one group; the table of causes shows "
            "what can be measured of that."
        )
    yield gap
    if metric_rows(part, "ece").height:
        yield (
            "Expected calibration error is above 0 by chance, and larger for the smaller group; it also depends on how "
            "often a group shows the concept. Compare groups by miscalibration, which does not."
        )


CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=disparity_findings,
    tables=disparity_tables,
    figures=disparity_figures,
    planted=disparity_planted,
    limitations=limitations,
)
