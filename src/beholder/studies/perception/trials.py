"""Perception in worlds of known truth: every claim about groups, tried where nothing, or one thing, is seen."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.core.results import Row
from beholder.studies.perception.bias import bias_rows
from beholder.studies.perception.curves import gap_rows, score_rows
from beholder.studies.perception.neutral import neutral_test_rows
from beholder.studies.perception.prompts import NEGATIVE, POSITIVE, Dimension
from beholder.studies.perception.scores import Judged
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import GENDER_ONLY, Trial, World

DIMENSIONS = (
    Dimension("warmth", "Warmth", ("warm", "friendly"), POSITIVE, "coldness"),
    Dimension("coldness", "Coldness", ("cold", "hostile"), NEGATIVE, "warmth"),
)
WORDS = ("warm", "cold", "friendly", "hostile", "male", "female", "white", "black")
"""Words of a kind stand at even places: a wholly unfair model finds women warm and men cold."""


def measure(world: World, options: MeasureOptions) -> Iterator[Row]:
    """The rows that carry claims; scores are cosines around 0.2, the last of them the neutral prompt's."""
    there = ~pl.Series(world.scores.sum(axis=1)).is_nan().to_numpy()
    cells, images = 0.2 + 0.01 * world.scores[there], world.table.filter(pl.Series(there))
    cosine, neutral = cells[:, :-1], cells[:, -1]
    judged = Judged(images, list(WORDS), cosine, cosine - neutral[:, None], neutral, DIMENSIONS, "cosine", {})
    rows = [*score_rows(judged), *bias_rows(judged, options), *gap_rows(judged, options)]
    rows += neutral_test_rows({None: judged}, options)
    # Where race and branch are the same label, race may truly be found: gender alone is asked.
    same = images["race"].eq("Black").eq(images["branch"].eq("a")).all()
    yield from (row for row in rows if not same or row.subset == "gender")


CLAIMS = ("gap", "sc_weat", "skew", "ranking", "markedness", "markedness_gap")
CROSSED = ("perception.gap:race × gender", "perception.neutral_test:race × gender")
TRIALS = Trial(
    prompts=len(WORDS) + 1,
    measure=measure,
    true={GENDER_ONLY: (*(f"perception.{name}:gender" for name in CLAIMS), *CROSSED)},
    found=("perception.gap", "perception.sc_weat", "perception.markedness"),
)
