"""Planted beside recovered, for the embedded reference model on the drawn design.

Its captions say warm words of those who smile and cold ones of those who do not, whoever they are; every other word of
the dimensions is said of everybody alike. So smiling should move three dimensions, and nothing else should move any.
"""

from __future__ import annotations

import polars as pl

from beholder.chapter.numbers import Result
from beholder.chapter.table import Cell, Table
from beholder.datasets.glasshouse import DESIGN_NAME
from beholder.studies.perception import phrases as said
from beholder.studies.perception import queries as reading

REFERENCE = "glasshouse/contrastive"
PLANTED = {"warmth": "more", "communion_pos": "more", "communion_neg": "less"}
"""What an open smile adds, by dimension; in all others nothing was planted."""
NOTHING = "nothing"


def perception_planted(part: pl.DataFrame) -> Table | None:
    """What smiling was made to do, dimension by dimension, and how many other effects are shown."""
    mine = part.filter((pl.col("model") == REFERENCE) & (pl.col("dataset") == DESIGN_NAME))
    effects = reading.rows(mine, "causal_effect")
    smiling = effects.filter(pl.col("subset") == "smiling").to_dicts()
    if not smiling:
        return None
    others = [row for row in effects.to_dicts() if row["subset"] != "smiling"]
    shown = [row for row in others if reading.shown(row)]
    largest = max((abs(row["value"]) for row in others), default=0.0)
    return Table(
        "Planted beside recovered",
        f"The effect of an open smile (4 over 0), {said.unit(smiling[0])}; small print: 95 % interval over identities. "
        "The reference model's captions say warm words of those who smile and cold ones of those who do not, and all "
        "other words of everybody alike.",
        ["Dimension", "Planted", "Recovered", "Shown"],
        [_cells(row) for row in smiling],
        1,
        (
            f"Gender, skin tone, age, light and pose were planted nowhere; {len(shown)} of their {len(others)} effects "
            f"are shown after correction, the largest of {100 * largest:.2f}: a trained model is not exactly what its "
            "captions imply.",
        ),
        "planted",
    )


def _cells(row: Result) -> list[Cell]:
    planted = PLANTED.get(row["concept"], NOTHING)
    found = NOTHING if not reading.shown(row) else "more" if row["value"] > 0 else "less"
    return [
        Cell(said.dimension(row["concept"])),
        Cell(planted),
        Cell(said.signed(row), said.bounds(row), strong=planted != NOTHING),
        Cell("as planted" if found == planted else "yet shown" if planted == NOTHING else "not shown"),
    ]
