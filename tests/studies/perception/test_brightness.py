"""Brightness maps show where one group is brighter."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import matrix, rng

from beholder.datasets.images import grey_values, open_image
from beholder.glasshouse.world import design
from beholder.studies.perception.design import brightness_rows
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import read_judged


def test_brightness_maps_show_where_one_group_is_brighter():
    """A lighter skin tone is brighter in the middle of the picture and alike at its edge."""
    images = pl.DataFrame(design(1)).filter((pl.col("pose") == 0) & (pl.col("smiling") == 0) & (pl.col("age") == 45))
    judged = read_judged(matrix(images), DIMENSIONS)
    rows = [row for row in brightness_rows(judged, rng()) if row.subset == "skin_tone" and row.concept is None]
    signs = {row.template: row.value for row in rows}
    side = int(np.sqrt(len(rows) - 1))
    assert signs[f"{side // 2},{side // 2}"] > 0.9
    assert signs["0,0"] == 0
    assert signs[None] == pytest.approx(np.mean([value for place, value in signs.items() if place]), abs=0.02)


def test_maps_are_split_by_the_other_attribute_and_signs_are_taken_pixel_by_pixel():
    images = pl.DataFrame(design(1)).filter(pose=0, smiling=0, age=45, lighting=0)
    judged = read_judged(matrix(images), DIMENSIONS)
    rows = [row for row in brightness_rows(judged, rng()) if row.subset == "skin_tone" and row.template is None]
    assert [row.concept for row in rows] == [None, "man", "woman"]
    men = images.filter(gender="man").sort("skin_tone")
    light, dark = (grey_values(open_image(uri)) for uri in men["uri"])
    assert rows[1].value == pytest.approx(np.sign(light - dark).mean())
