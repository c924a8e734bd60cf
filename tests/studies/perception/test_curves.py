"""Curves: means by level and group, quadratic fits, correlations of opposite dimensions."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import PROMPTS, designed, matrix, measured, one, photographs, rng

from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import read_judged


def test_trajectories_are_means_by_level_and_group_with_a_quadratic_fit(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    warmth = judged.by_dimension(judged.delta)[:, 0]
    ages, means = faces.images["age"].to_numpy(), []
    mine = ((faces.images["race"] == "Black") & (faces.images["gender"] == "Female")).to_numpy()
    where = {"subset": "age", "group": "Black Female", "concept": "warmth"}
    for age in (25, 35, 45, 55):
        means.append(warmth[mine & (ages == age)].mean())
        assert one(results, "trajectory", template=str(age), **where)["value"] == pytest.approx(means[-1])
    fitted = np.polyval(np.polyfit([25, 35, 45, 55], means, 2), 35)
    assert one(results, "trajectory_fit", template="35", **where)["value"] == pytest.approx(fitted)


@pytest.mark.slow
def test_single_years_of_age_follow_the_studys_rule_where_enough_are_there():
    images = photographs(900).with_columns(
        age=pl.Series(rng(8).choice([20.0, 21.0, 22.0, *np.arange(30.0, 50.0)], 900, p=[0.3, 0.3, 0.3, *[0.005] * 20]))
    )
    table = measured(matrix(images)).filter(pl.col("metric") == "perception.trajectory", pl.col("group") == "everyone")
    assert set(table["template"]) == {"20", "21", "22"}
    assert table["n"].n_unique() == 1
    assert table["note"].str.contains("images of each age with 100 or more").all()


@pytest.mark.slow
def test_opposite_curves_are_correlated_over_the_levels_of_a_confound():
    images = designed(5).filter(pl.col("pose") == 0)
    prompts = PROMPTS
    cells = rng(6).normal(0.2, 0.001, (images.height, prompts.height))
    smile = images["smiling"].to_numpy()[:, None]
    for words, slope in ((DIMENSIONS[2].words, 0.01), (DIMENSIONS[3].words, -0.01)):
        cells[:, prompts["concept"].is_in(words).to_numpy()] += slope * smile
    row = one(measured(matrix(images, cells)), "opposites_r", subset="smiling", concept="agency_pos")
    assert row["value"] < -0.99
    assert row["n"] == 3
