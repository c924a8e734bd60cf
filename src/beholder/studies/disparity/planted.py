"""Known truth against what the audit found: on how many drawn people of each group an object is in view."""

from __future__ import annotations

import polars as pl

from beholder.chapter.chapter import Cell, Table, labels, names
from beholder.chapter.numbers import points_range, signed
from beholder.chapter.queries import by_column, by_model
from beholder.datasets.glasshouse import OBJECTS_NAME
from beholder.glasshouse.planted import PLANTED_OBJECTS, REFERENCE, implied_gap, implied_matched_gap
from beholder.studies.disparity import queries
from beholder.studies.disparity.queries import Pair

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
