"""Known truth against what the audit found, for the embedded reference model on the drawn design.

Its captions use warm words for people who smile and cold words for people who do not, whoever they are. They use every
other word of the dimensions for everybody alike. So smiling should change three dimensions, and nothing else should
change any.
"""

from __future__ import annotations

import polars as pl

from beholder.chapter.chapter import Cell, Table
from beholder.chapter.numbers import Result
from beholder.chapter.queries import metric_rows
from beholder.datasets.glasshouse import DESIGN_NAME
from beholder.glasshouse.planted import WARM_RATES, implied_warmth, planted_row
from beholder.studies.perception import phrases, queries

REFERENCE = "glasshouse/contrastive"
PLANTED = {"warmth": "more", "communion_pos": "more", "communion_neg": "less"}
"""What an open smile adds, by dimension; in all other dimensions nothing was planted."""
NOTHING = "nothing"


def perception_planted(part: pl.DataFrame) -> Table | None:
    """The planted and the measured effect of smiling on each dimension, and how many other effects are found."""
    reference = part.filter((pl.col("model") == REFERENCE) & (pl.col("dataset") == DESIGN_NAME))
    effects = metric_rows(reference, "causal_effect")
    smiling = effects.filter(pl.col("subset") == "smiling").to_dicts()
    if not smiling:
        return None
    others = [row for row in effects.to_dicts() if row["subset"] != "smiling"]
    called = [row for row in others if queries.found(row)]
    largest = max((abs(row["value"]) for row in others), default=0.0)
    caption = (
        f"The effect of an open smile (4 against 0), {phrases.unit(smiling[0])}; small print: interval over "
        "identities. The reference model's captions use warm words for people who smile, cold words for people who do "
        "not, and all other words for everybody alike."
    )
    note = (
        f"No effect of gender, skin tone, age, light or pose was planted; {len(called)} of their {len(others)} "
        f"effects are found, and the largest is {100 * largest:.2f}: a trained model is not "
        "exactly what its captions imply."
    )
    title, header = "Known truth against what the audit found", ["Dimension", "Planted", "Found", "Verdict"]
    return Table(title, caption, header, [_cells(row) for row in smiling], 1, (note,), "planted")


def _cells(row: Result) -> list[Cell]:
    planted = PLANTED.get(row["concept"], NOTHING)
    measured = NOTHING if not queries.found(row) else "more" if row["value"] > 0 else "less"
    return [
        Cell(phrases.dimension(row["concept"])),
        Cell(planted),
        Cell(phrases.signed(row), phrases.bounds(row), strong=planted != NOTHING),
        Cell("as planted" if measured == planted else "found, not planted" if planted == NOTHING else "not found"),
    ]


# Values for the model card and its tests

NOTE = "softmax of a warm word against a cold one; planted: the same rate of warm captions"
SHARES = [
    planted_row("perception.warm_against_cold", "smiling", implied_warmth(k), group=str(k), concept="Warmth", note=NOTE)
    for k in WARM_RATES
]
SIGNS = [
    planted_row("perception.slope_sign", "smiling", sign, concept=concept, note="the sign is what is planted")
    for concept, sign in (("Warmth", 1.0), ("Communion +", 1.0), ("Communion -", -1.0), ("Competence", 0.0))
]
WARMTH = [*SHARES, *SIGNS]
"""What the captions imply for smiling and warmth."""
