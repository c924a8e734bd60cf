"""Cases of the findings: worlds of known truth, with the paper's categories for names; and planted numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from beholder._steps import with_landmarks
from beholder.core.results import Row, results_table
from beholder.studies.classics.study import CLASSICS, TRIALS
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import ALWAYS_YES, GENDER_ONLY, NOISE, UNFAIR, Design, draw

NAMES = {"odd": "crime-related", "a": "bad words", "made · made": "21 classes · a photo of", "made": "Gender-Career"}
SIDES = {"even – odd": "gender/career – gender/family"}
MOVED = Row("classics.movement", 0.5, 40, "probability", "age", "0-2", concept="non-human", template="both")


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    """Every world with few and with many people; drawn people, as planted and not."""
    options = MeasureOptions(draws=100, permutations=10, shuffles=200)
    for world in (UNFAIR, GENDER_ONLY, NOISE, ALWAYS_YES):
        for design in (Design(3, 3), Design(8, 30), Design(40, 40)):
            drawn = draw(world, design, TRIALS.prompts, np.random.default_rng([5, design.women]))
            rows = [*TRIALS.measure(drawn, options)]
            rows += [MOVED._replace(note="from 0.0 % (with child · a photo of) to 50.0 % (21 classes · this is)")]
            yield f"{world}, {design.women} + {design.men}", table(rows, "someone/model", "fairface")
    for value, said in ((0.5, "as planted"), (0.9, "far from it")):
        row = Row("classics.belief", value, 120, "probability", "gender", "woman", concept="supporting work")
        yield said, table([row], "glasshouse/contrastive", "glasshouse")


def table(rows: list[Row], model: str, dataset: str) -> pl.DataFrame:
    made = results_table(rows, study="classics", model=model, dataset=dataset)
    named = [pl.col(column).replace(NAMES | SIDES) for column in ("concept", "template")]
    return with_landmarks(made.with_columns(named), CLASSICS)
