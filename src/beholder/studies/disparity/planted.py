"""Known truth against what the audit found: on how many drawn people of each group an object is in view."""

from __future__ import annotations

from typing import Any

import polars as pl

from beholder.chapter.numbers import points_range, signed
from beholder.chapter.queries import by_model
from beholder.chapter.table import Cell, Table, labels, names
from beholder.datasets.glasshouse import OBJECTS_NAME
from beholder.glasshouse.planted import REFERENCE, planted_row
from beholder.glasshouse.planted_objects import (
    PLANTED_OBJECTS,
    implied_average_precision,
    implied_gap,
    implied_matched_gap,
)
from beholder.studies.disparity import queries
from beholder.studies.disparity.queries import Pair

PAIR = Pair("man", "woman")
PLANTED: list[dict[str, Any]] = [
    *(
        planted_row("disparity.ap_gap", "gender", implied_gap(p.item), concept=p.item, note=f"planted: {p.note}")
        for p in PLANTED_OBJECTS
    ),
    *(
        planted_row(
            "disparity.average_precision",
            "gender",
            implied_average_precision(p.item, group),
            group=group,
            concept=p.item,
            note=f"planted: {p.whole[group]} of {p.wearers[group]} in view",
        )
        for p in PLANTED_OBJECTS
        for group in p.wearers
    ),
]
"""The values that the planted objects imply, under the metrics' own names."""


def disparity_planted(part: pl.DataFrame) -> Table | None:
    """Every planted gap and the measured one, for the reference models on drawings of their own world."""
    taught = pl.col("model").str.starts_with(REFERENCE) & (pl.col("dataset") == OBJECTS_NAME)
    own = part.filter(taught)
    if not queries.tested(own, PAIR).height:
        return None
    body = []
    for model, rows in by_model(own):
        measured = {row["concept"]: row for row in queries.tested(rows, PAIR).to_dicts()}
        for planted in PLANTED_OBJECTS:
            row = measured[planted.item]
            cells = [Cell(signed(implied_gap(planted.item))), Cell(signed(row["raw"]))]
            cells.append(Cell(signed(implied_matched_gap(planted.item))))
            cells.append(Cell(signed(row["value"]), points_range(row), strong=bool(row["shown"])))
            body.append([*names(own, model, planted.item), *cells])
    return Table(
        "Known truth against what the audit found",
        "On some people only a strip of an object is drawn, more often in one group. Planted: the gap in points of a "
        "model that ranks whole objects first and the others at random; as published, and at matched prevalence. A "
        "trained model also misses whole objects and may recognise a strip. Small print: 95 % interval.",
        [*labels(own, "Object"), "Planted", "Found", "Planted, matched", "Found, matched"],
        body,
        len(labels(own, "Object")),
        tuple(f"{planted.item}: {planted.note}" for planted in PLANTED_OBJECTS),
    )
