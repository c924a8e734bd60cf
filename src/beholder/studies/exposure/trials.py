"""Trial of exposure: a world's first score says how often captions name someone, the others what a model sees.

A name stands for its gender and for nothing else that a picture shows: no model of these worlds knows anyone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from beholder.core.results import Row
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.apa.prompts import identity_prompts
from beholder.studies.exposure.measures import RATIO, identity_rows, ratio_rows
from beholder.studies.public_figures.identity import IDENTITY, known_by_name
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import GENDER_ONLY, WOMAN, Trial, World

SEEN = 4  # numbers that a model reads off a picture
CAPTIONS_DIFFER = (RATIO, "exposure.named")


def measure(world: World, options: MeasureOptions) -> Iterator[Row]:
    """Ratios of captions, and captions against what the model knows of the same people."""
    captions = np.floor(np.exp(4 + 1.5 * np.clip(world.scores[:, 0], -10, 10)))
    pictures = world.table.rename({"person": "name"}).with_columns(captions=captions)
    people = pictures.unique("name", keep="first", maintain_order=True).with_columns(
        captions=pl.col("captions").fill_nan(0).cast(pl.Int64),
        ambiguous=pl.when(pl.col("captions").is_nan()).then(pl.lit("unknown")),
    )
    yield from ratio_rows(people, options)
    known = pl.concat(known_by_name(each) for each in _matrices(pictures, world.scores[:, 1:], options))
    yield from identity_rows(people.join(known, on="name", maintain_order="left"), options)


def _matrices(pictures: pl.DataFrame, seen: np.ndarray, options: MeasureOptions) -> Iterator[ScoreMatrix]:
    """One for each branch: how well each name fits each picture."""
    rng = options.rng()
    for (branch,), part in pictures.with_row_index().group_by(["branch"], maintain_order=True):
        names = part.unique("name", keep="first", maintain_order=True)
        traits = rng.standard_normal((names.height, SEEN)) + np.where(names["gender"] == WOMAN, 1, -1)[:, None]
        cells = seen[part["index"].to_numpy()] @ traits.T
        prompts = identity_prompts("names", "{}", names["name"].to_list()).table
        yield ScoreMatrix("names", part, prompts, ("logit_true",), cells[:, :, None], kind=IDENTITY, part=str(branch))


TRIALS = Trial(prompts=1 + SEEN, measure=measure, true={GENDER_ONLY: CAPTIONS_DIFFER}, found=CAPTIONS_DIFFER)
