"""Disparity's chapter: out of hundreds of concepts, those with the widest gaps come first."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import Cell, Chapter, Question, Table, labels, names
from beholder.chapter.numbers import drawn, points_range, signed
from beholder.chapter.queries import by_column, by_model, metric_rows
from beholder.datasets.glasshouse import OBJECTS_NAME
from beholder.glasshouse.planted import PLANTED_OBJECTS, REFERENCE, implied_gap, implied_matched_gap
from beholder.studies.disparity import queries
from beholder.studies.disparity.charts import disparity_figures
from beholder.studies.disparity.findings import disparity_findings
from beholder.studies.disparity.queries import Pair
from beholder.studies.disparity.tables import disparity_tables

PAIR = Pair("man", "woman")


def disparity_planted(part: pl.DataFrame) -> Table | None:
    """Every planted gap and the measured one, for the reference models on drawings of their own world."""
    taught = pl.col("model").str.starts_with(REFERENCE) & (pl.col("dataset") == OBJECTS_NAME)
    own = part.filter(taught)
    if not queries.tested(own, PAIR).height:
        return None
    body = []
    for model, rows in by_model(own):
        measured = by_column(queries.tested(rows, PAIR), "concept")
        for planted in PLANTED_OBJECTS:
            row = measured[planted.item]
            raw = [Cell(signed(value)) for value in (implied_gap(planted.item), row["raw"])]
            matched = Cell(signed(row["value"]), points_range(row), strong=row["found"])
            cells = [*raw, Cell(signed(implied_matched_gap(planted.item))), matched]
            body.append([*names(own, model, planted.item), *cells])
    caption = (
        "On some people only a strip of an object is drawn, more often in one group. Planted: the gap in points of a "
        "model that ranks whole objects first and the others at random; as published, and at matched prevalence. A "
        "trained model also misses whole objects and may recognise a strip. Small print: 95 % "
        "interval for all objects at once; bold: a difference was found."
    )
    header = [*labels(own, "Object"), "Planted", "Found", "Planted, matched", "Found, matched"]
    notes = tuple(f"{planted.item}: {planted.note}" for planted in PLANTED_OBJECTS)
    title = "Known truth against what the audit found"
    return Table(title, caption, header, body, len(labels(own, "Object")), notes)


# Disparity's chapter

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
