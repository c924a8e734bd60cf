"""Brightness maps show where one group is brighter."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import matrix, rng

from beholder.glasshouse.design import design
from beholder.studies.perception.brightness import brightness_rows
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import read_judged


def test_brightness_maps_show_where_one_group_is_brighter():
    """A lighter skin tone is brighter in the middle of the picture and alike at its edge."""
    images = pl.DataFrame(design(1)).filter((pl.col("pose") == 0) & (pl.col("smiling") == 0) & (pl.col("age") == 45))
    judged = read_judged(matrix(images), DIMENSIONS)
    rows = [row for row in brightness_rows(judged, rng()) if row.subset == "skin_tone"]
    signs = {row.template: row.value for row in rows}
    assert signs["9,9"] == 1
    assert signs["0,0"] == 0
    assert signs[None] == pytest.approx(np.mean([value for place, value in signs.items() if place]))
