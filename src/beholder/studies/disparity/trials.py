"""How disparity is tried in worlds of known truth.

Everybody has two pictures for each concept's sake: one that shows it and one that does not, with scores of their own. A
prompt's own level is the same for both, so it is taken off. What a world's model sees then moves recognition.
A model whose scores for some women lie farther apart recognises them worse: no false alarm, so that design is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from beholder.core.results import Row
from beholder.datasets.dataset import SCHEMA, Dataset
from beholder.studies.disparity.confidence import calibration_rows
from beholder.studies.disparity.gaps import find_gaps, gap_rows
from beholder.studies.disparity.scores import Confidence, concept_scores
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import DESIGNS, GENDER_ONLY, UNFAIR, Trials, World

CONCEPTS = 5
"""Odd: in the wholly unfair world both pictures of a concept then have scores of opposite signs."""
SURE = 0.7
"""Confidence in a concept with a score above 0; below 0 it is 1 − SURE. So it has the same spread in all cells."""


def measure(world: World, options: MeasureOptions) -> Iterator[Row]:
    """Gaps of recognition and of calibration."""
    level = np.nan_to_num(np.nanmean(world.scores, axis=0))
    scores = np.concatenate(np.split(world.scores - level, 2, axis=1))
    shows = np.repeat([True, False], len(world.table))
    images = pl.concat([world.table, world.table]).with_columns(image_id=pl.Series(np.arange(len(shows)).astype(str)))
    concepts = [f"concept {number}" for number in range(CONCEPTS)]
    dataset = Dataset("a world", "", "", images, objects=pl.DataFrame(schema=SCHEMA))
    present = np.repeat(shows[:, None], CONCEPTS, axis=1)
    data = concept_scores(images, "gender", concepts, scores, present, dataset, person=options.person)
    yield from gap_rows(find_gaps(data, options))
    confidence = np.where(np.isnan(scores), np.nan, np.where(scores > 0, SURE, 1 - SURE))
    yield from calibration_rows(data, Confidence(confidence, "a world's"), options)


TRIALS = Trials(
    prompts=2 * CONCEPTS,
    measure=measure,
    designs=tuple(name for name, design in DESIGNS.items() if design.spread == 1),
    true={world: ("disparity.",) for world in (GENDER_ONLY, UNFAIR)},
    found=("disparity.ap_gap_matched", "disparity.miscalibration_gap"),
)
