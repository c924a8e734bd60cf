"""How GRAS is tried in worlds whose truth is known.

Gender and race are compared, within each other and the image source. In designs of unbalanced strata both race and
source are four to one by gender.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from scipy.special import ndtr

from beholder.core.results import Row
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.groups import QUESTIONS
from beholder.studies.gras.measures import gras_rows
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import GENDER_ONLY, Trial, World

TRAITS = pl.DataFrame({"trait": ["kind", "cold", "calm", "loud"], "valence": ["positive", "negative"] * 2})
WORDINGS = {"T1": "Is the person {}?", "T2": "Does the person look {}?"}


def _measured(world: World, options: MeasureOptions) -> Iterator[Row]:
    """The study's rows, with P(Yes) in place of scores."""
    table = world.table.select("image_id", "person", "gender", "source", race=_turned_race(world.table))
    prompts = gras_prompts(TRAITS, WORDINGS).table
    by_wording = world.scores.reshape(-1, len(WORDINGS), TRAITS.height)  # both wordings of a trait point to one side
    p_yes = ndtr(by_wording.swapaxes(1, 2)).reshape(world.scores.shape)
    yield from gras_rows({QUESTIONS: ScoreMatrix(QUESTIONS, table, prompts, ("score",), p_yes[:, :, None])}, options)


def _turned_race(table: pl.DataFrame) -> pl.Series:
    """Race, moved on by two people within each gender: unbalanced as before, but not the same label as the source."""
    people = table.unique("person", maintain_order=True)
    race = people["race"].to_numpy().copy()
    for gender in people["gender"].unique():
        mine = (people["gender"] == gender).to_numpy()
        race[mine] = np.roll(race[mine], 2)
    return table.select(pl.col("person").replace_strict(people["person"], pl.Series(race))).to_series()


BY_GENDER = ("largest_gap", "other_gap", "attribute", "gap", "valence_share", "valence")
OF_GENDER = (*(f"gras.{name}:gender" for name in BY_GENDER), "gras.score", "gras.intersection")
TRIALS = Trial(
    prompts=TRAITS.height * len(WORDINGS),
    measure=_measured,
    true={GENDER_ONLY: OF_GENDER},
    found=("gras.largest_gap", "gras.attribute", "gras.gap", "gras.score"),
)
