"""Induced variation: pairs differ in one attribute alone; the published numbers carry no verdict."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from studies.perception.worlds import OPTIONS, PROMPTS, designed, matrix, measured, one, rng

from beholder.studies.perception.design import PAIRS, draw_pairs
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import read_judged
from beholder.studies.study import MeasureOptions


def test_pairs_differ_in_one_attribute_alone_and_far_enough():
    images = designed(3)
    for attribute in ("smiling", "gender", "seed", "pose"):
        first, second = draw_pairs(images, attribute, rng(), 200)
        assert len(first) == 200
        others = [
            name for name in ("gender", "skin_tone", "seed", "age", "smiling", "lighting", "pose") if name != attribute
        ]
        assert images[first.tolist()].select(others).equals(images[second.tolist()].select(others))
        assert (images[attribute].to_numpy()[first] != images[attribute].to_numpy()[second]).all()


@pytest.mark.slow
def test_induced_variation_is_the_median_absolute_difference_and_attributes_are_compared_by_ranks():
    images = designed(6).filter(pl.col("lighting") == 0)
    prompts = PROMPTS
    cells = rng(7).normal(0.2, 0.004, (images.height, prompts.height))
    cells[:, (prompts["concept"] != "").to_numpy()] += 0.004 * images["smiling"].to_numpy()[:, None]
    table = measured(matrix(images, cells))
    first, second = draw_pairs(images, "smiling", OPTIONS.rng(), PAIRS)
    judged = read_judged(matrix(images, cells), DIMENSIONS)
    scores = judged.by_dimension(judged.delta)
    expected = np.median(np.abs(scores[first, 0] - scores[second, 0]))
    row = one(table, "induced_variation", subset="smiling", concept="warmth")
    assert row["value"] == pytest.approx(expected)
    test = one(table, "induced_variation_test", group="age", against="smiling")
    drawn = [draw_pairs(images, name, OPTIONS.rng(), PAIRS) for name in ("age", "smiling")]
    apart = [np.abs(scores[a] - scores[b]) for a, b in drawn]
    assert test["value"] == pytest.approx(stats.mannwhitneyu(*map(np.ravel, apart)).statistic / 8000**2)
    assert (test["n"], test["verdict"], test["p_value"]) == (2 * 8000, None, None)


@pytest.mark.slow
def test_compat_tests_all_values_as_if_they_were_independent():
    images = designed(6, lighting=0, pose=0)
    table = measured(matrix(images), options=MeasureOptions(compat=True, draws=100))
    tests = table.filter(metric="perception.induced_variation_test")
    assert set(tests["variant"]) == {"as released"}
    assert tests["p_value"].null_count() == 0
