"""Planted beside recovered for disparity: on how many drawn people of each group a thing is in view."""

from __future__ import annotations

import polars as pl

from beholder.chapter.table import Cell, Table, labels, names
from beholder.datasets.glasshouse import OBJECTS_NAME
from beholder.studies.disparity import phrases as said
from beholder.studies.disparity import queries as reading
from beholder.studies.public_figures.planted import REFERENCE

PAIR = "man less woman"


def disparity_planted(part: pl.DataFrame) -> Table | None:
    """Every planted gap with what was measured, for the reference models on drawings of their own world."""
    taught = pl.col("model").str.starts_with(REFERENCE) & (pl.col("dataset") == OBJECTS_NAME)
    own = part.filter(taught)
    if not reading.tested(own, PAIR).height:
        return None
    from beholder.glasshouse.planted_objects import PLANTED_OBJECTS, implied_gap, implied_matched_gap

    body = []
    for model, mine in reading.models(own):
        found = {row["concept"]: row for row in reading.tested(mine, PAIR).to_dicts()}
        for planted in PLANTED_OBJECTS:
            row = found[planted.item]
            ways = [Cell(said.signed(implied_gap(planted.item))), Cell(said.signed(row["raw"]))]
            ways.append(Cell(said.signed(implied_matched_gap(planted.item))))
            ways.append(Cell(said.signed(row["value"]), said.points_range(row), strong=bool(row["shown"])))
            body.append([*names(own, model, planted.item), *ways])
    return Table(
        "Planted beside recovered",
        "Things of which only a strip is drawn on some people, more often in one group. Planted: the gap in points of "
        "a model that ranks whole things first and the rest by chance; as published, and at matched prevalence. A "
        "trained model also overlooks whole things and may see a strip. Small print: 95 % interval.",
        [*labels(own, "Thing"), "Planted", "Recovered", "Planted, matched", "Recovered, matched"],
        body,
        len(labels(own, "Thing")),
        tuple(f"{planted.item}: {planted.note}" for planted in PLANTED_OBJECTS),
    )
