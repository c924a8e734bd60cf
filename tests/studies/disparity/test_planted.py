"""Known truth against what the audit found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from beholder.glasshouse.planted import PLANTED_OBJECTS, implied_average_precision, implied_gap
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.chapter import disparity_planted


def test_planted_gaps_are_listed_for_the_reference_model_only(
    full: pl.DataFrame, object_world: Callable[..., ScoreMatrix], measure: Callable[..., pl.DataFrame]
):
    assert disparity_planted(full) is None
    world = object_world(200, ("hat", "tie", "handbag", "glasses", "phone"), name="glasshouse-objects")
    results = measure(replace(world, channels=("cosine",)), model="glasshouse/contrastive", draws=50)
    table = disparity_planted(results)
    cells = {row[0].text: [cell.text for cell in row] for row in table.rows}
    assert cells["hat"][1] == "−19.2"
    assert cells["phone"][3] == "0.0"


def test_a_planted_gap_is_the_difference_of_the_two_precisions():
    assert len(PLANTED_OBJECTS) == 5
    for planted in PLANTED_OBJECTS:
        man, woman = (implied_average_precision(planted.item, group) for group in ("man", "woman"))
        assert implied_gap(planted.item) == man - woman
