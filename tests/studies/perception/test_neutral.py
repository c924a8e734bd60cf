"""The neutral prompt: tests on shared seeds, and what subtracting it does to the groups."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from studies.perception.worlds import designed, matrix, measured, one

from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import read_judged


def test_the_neutral_prompt_is_compared_on_shared_seeds():
    images = designed(8).filter((pl.col("lighting") == 0) & (pl.col("pose") == 0))
    sheet = matrix(images)
    judged = read_judged(sheet, DIMENSIONS)
    table = (
        images.with_columns(value=pl.Series(judged.neutral))
        .group_by("seed", "skin_tone", "gender")
        .agg(pl.col("value").mean())
    )
    a, b = (
        table.filter(pl.col("skin_tone") == tone, pl.col("gender") == "man").sort("seed")["value"].to_numpy()
        for tone in ("2", "9")
    )
    row = one(measured(sheet), "neutral_test", group="2 man", against="9 man")
    assert row["value"] == pytest.approx(stats.ttest_rel(a, b).statistic)
    assert row["note"].startswith("paired t over 8 pictures")


def test_narrowing_is_the_ratio_of_the_group_means_spreads(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    labels = (faces.images["race"] + " " + faces.images["gender"]).to_numpy()
    spread = {}
    for name, scores in (("before", judged.cosine), ("after", judged.delta)):
        mean = judged.by_dimension(scores).mean(axis=1)
        spread[name] = np.std([mean[labels == label].mean() for label in np.unique(labels)])
    row = one(results, "narrowing", concept="groups")
    assert row["value"] == pytest.approx(spread["after"] / spread["before"])
    assert row["low"] < row["high"]
