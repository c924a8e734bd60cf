"""Conventional bias metrics: markedness, mean cosine and SC-WEAT equal the obvious computation."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from studies.perception.worlds import GENDERS, decided, measured, one

from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import read_judged
from beholder.studies.study import MeasureOptions


def test_markedness_of_male_is_a_number_from_real_rows(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    men = (faces.images["gender"] == "Male").to_numpy()
    expected = 100 * (judged.neutral[men] > judged.cosine[:, judged.words.index("male")][men]).mean()
    row = one(results, "markedness", group="Male")
    assert row["value"] == pytest.approx(expected)
    assert 30 < row["value"] < 70
    assert row["n"] == men.sum()


@pytest.mark.slow
def test_compat_prints_fairfaces_zero_and_says_why(faces):
    table = measured(faces, options=MeasureOptions(compat=True, draws=200, permutations=5))
    row = one(table, "markedness", group="Female")
    assert row["value"] == 0
    assert "looks for 'female' among 'Female'" in row["note"]
    assert one(table, "markedness", group="White")["value"] > 0


def test_mean_cosine_takes_the_positive_dimensions_only(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    positive = [d.valence == "positive" for d in judged.dimensions]
    assert sum(positive) == 5
    asian = (faces.images["race"] == "Asian").to_numpy()
    expected = judged.by_dimension(judged.cosine)[asian][:, positive].mean()
    assert one(results, "mean_cosine", group="Asian")["value"] == pytest.approx(expected)


def test_sc_weat_has_the_studys_four_pairs(results):
    table = results.filter(pl.col("metric") == "perception.sc_weat", pl.col("concept") == "mean")
    pairs = {("White", "Black"), ("Asian", "Black"), ("Asian", "White"), ("Male", "Female")}
    assert set(table.select("group", "against").iter_rows()) == pairs
    assert table["note"].str.starts_with("mean over 8 dimensions; ").all()
    assert set(table["variant"]) == {None, "within gender", "within race"}


def test_sc_weat_is_the_mean_over_words_of_their_effect_sizes(faces, results):
    judged = read_judged(faces, DIMENSIONS)
    a, b = ((faces.images["gender"] == name).to_numpy() for name in GENDERS)
    effects = []
    for word in DIMENSIONS[0].words:
        x, y = judged.cosine[:, judged.words.index(word)][a], judged.cosine[:, judged.words.index(word)][b]
        effects.append((x.mean() - y.mean()) / np.concatenate([x, y]).std(ddof=1))
    row = one(results, "sc_weat", group="Male", against="Female", concept="warmth")
    assert row["value"] == pytest.approx(np.mean(effects))
    inside = decided(results, "sc_weat", group="Male", against="Female", concept="warmth")
    assert inside["variant"] == "within race"
    assert inside["low"] < inside["value"] < inside["high"]
    assert inside["note"].startswith("mean over 6 words; ")
