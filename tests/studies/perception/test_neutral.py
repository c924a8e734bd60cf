"""The neutral prompt: tests on shared seeds, and what subtracting it does to the groups."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from studies.perception.worlds import designed, matrix, measured, one, photographs, rng

from beholder.studies.perception.bias import AT_REST, neutral_rows
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import Judged, read_judged
from beholder.studies.study import MeasureOptions


@pytest.mark.slow
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
    every = measured(sheet).filter(metric="perception.neutral_test", group="2 man", against="9 man").to_dicts()
    (row,), (unsmiling,) = ([each for each in every if each["template"] == name] for name in (None, AT_REST))
    assert row["value"] == pytest.approx(stats.ttest_rel(a, b).statistic)
    assert row["note"].startswith("paired t over 8 shared seeds")
    assert unsmiling["value"] != row["value"]


def at_smiling_0(sheet) -> tuple[np.ndarray, np.ndarray]:
    """The neutral cosines of MST 2 men and MST 9 men without a smile, seed by seed."""
    judged = read_judged(sheet, DIMENSIONS)
    rest = sheet.images.with_columns(value=pl.Series(judged.neutral)).filter(smiling=0, gender="man")
    means = rest.group_by("seed", "skin_tone").agg(pl.col("value").mean())
    a, b = (means.filter(skin_tone=tone).sort("seed")["value"].to_numpy() for tone in ("2", "9"))
    return a, b


@pytest.mark.slow
def test_pictures_without_a_smile_are_tested_and_correlated_over_seeds():
    """As in the study's Fig. S.13 and S.14."""
    sheet = matrix(designed(8, lighting=0, pose=0))
    a, b = at_smiling_0(sheet)
    results = measured(sheet)
    test = one(results, "neutral_test", group="2 man", against="9 man", template=AT_REST)
    assert test["value"] == pytest.approx(stats.ttest_rel(a, b).statistic)
    row = one(results, "neutral_group_r", group="2 man", against="9 man")
    assert row["value"] == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert row["low"] < row["value"] < row["high"]
    assert row["n"] == 8
    assert set(results.filter(metric="perception.density")["subset"]) >= {AT_REST, "white", "female", "old"}


def test_photographs_of_one_person_are_no_independent_evidence():
    """Four photographs of everyone: t is that of people's means, where all have as many photographs."""
    images = photographs(240).with_columns(
        person=pl.int_range(240) // 4, race=pl.Series(np.repeat(["White", "Black", "Asian"], 80)), gender=pl.lit("Male")
    )
    sheet = matrix(images)
    judged = read_judged(sheet, DIMENSIONS)
    means = judged.neutral.reshape(60, 4).mean(axis=1)
    row = one(measured(sheet), "neutral_test", group="Asian Male", against="Black Male")
    assert row["value"] == pytest.approx(stats.ttest_ind(means[40:], means[20:40], equal_var=False).statistic)


def test_narrowing_is_the_ratio_of_the_group_means_spreads(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    labels = (faces.images["race"] + " " + faces.images["gender"]).to_numpy()
    spread = {}
    for name, scores in (("before", judged.cosine), ("after", judged.delta)):
        mean = judged.by_dimension(scores).mean(axis=1)
        spread[name] = np.std([mean[labels == label].mean() for label in np.unique(labels)])
    row = one(results, "narrowing", concept="groups")
    assert row["value"] == pytest.approx(spread["after"] / spread["before"])
    assert row["verdict"] is None


def world(seed: int) -> Judged:
    """Two races of two genders, 200 people; one prompt's noise is subtracted from a mean over many words."""
    draw, images = rng(seed), photographs(200, races=("White", "Black"))
    words = sorted({word for dimension in DIMENSIONS for word in dimension.words})
    cosine, neutral = draw.normal(size=(200, len(words))), draw.normal(size=200)
    return Judged(images, words, cosine, cosine - neutral[:, None], neutral, DIMENSIONS, "cosine", {})


def shuffled_slowly(judged: Judged, times: int) -> list[float]:
    """Narrowing of images whose crossed labels are permuted, one at a time; with one image a person."""
    labels = (judged.images["race"] + judged.images["gender"]).to_numpy()
    before, after = (judged.by_dimension(scores).mean(axis=1) for scores in (judged.cosine, judged.delta))
    ratios = []
    for seed in range(times):
        mixed = rng(seed).permutation(labels)
        spread = [np.std([each[mixed == label].mean() for label in set(labels)]) for each in (after, before)]
        ratios.append(spread[0] / spread[1])
    return ratios


def test_the_landmark_of_narrowing_is_that_of_labels_shuffled_one_by_one():
    """Noise moves groups apart, always: that is no news."""
    judged, options = world(1), MeasureOptions(permutations=400, shuffles=99)
    row = next(row for row in neutral_rows(judged, options) if row.metric == "perception.narrowing")
    assert row.landmark > 3
    assert np.log(row.landmark) == pytest.approx(np.log(np.median(shuffled_slowly(judged, 400))), abs=0.15)
