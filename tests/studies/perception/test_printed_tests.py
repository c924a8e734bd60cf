"""What `--compat` prints as the paper does: tests without correction, equal bands, and what its figures show."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from studies.perception.worlds import designed, matrix, one, photographs, rng, two_groups

from beholder.core.results import results_table
from beholder.studies.perception.bias import AT_REST, bias_rows, neutral_rows
from beholder.studies.perception.charts import perception_figures
from beholder.studies.perception.curves import group_curve_rows
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import read_judged
from beholder.studies.study import MeasureOptions

PRINTED = MeasureOptions(compat=True, draws=100, permutations=5, shuffles=399)


def test_sc_weats_p_is_the_share_of_equal_halves_that_lie_farther_apart_in_the_same_direction():
    judged = two_groups(5, 1.0, seed=3)
    ours = results_table(bias_rows(judged, PRINTED), study="perception", model="m", dataset="d")
    row = one(ours, "sc_weat", concept="warmth")
    scores = (judged.cosine / judged.cosine.std(axis=0, ddof=1)).mean(axis=1)
    halves = [scores[list(half)].sum() for half in combinations(range(10), 5)]
    assert row["p_value"] == pytest.approx(np.mean(np.array(halves) >= scores[:5].sum() - 1e-12))
    assert 2 * row["value"] == pytest.approx(2 * (scores[:5].mean() - scores[5:].mean()))
    assert row["note"].endswith("p as printed: one-sided permutation of equal halves (Eq. 7), uncorrected")
    other = two_groups(5, -1.0, seed=3)
    against = results_table(bias_rows(other, PRINTED), study="perception", model="m", dataset="d")
    if one(against, "sc_weat", concept="warmth")["value"] < 0:
        assert one(against, "sc_weat", concept="warmth")["p_value"] > 0.5  # the other direction does not count


@pytest.fixture(scope="module")
def neutral() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The images with their neutral cosine, and the rows."""
    judged = read_judged(matrix(designed(8, lighting=0, pose=0)), DIMENSIONS)
    rows = results_table(neutral_rows(judged, PRINTED), study="perception", model="m", dataset="d")
    return judged.images.with_columns(value=pl.Series(judged.neutral)), rows


def test_neutral_tests_have_the_paired_ts_own_p(neutral: tuple[pl.DataFrame, pl.DataFrame]):
    images, rows = neutral
    means = images.filter(smiling=0, gender="man").group_by("seed", "skin_tone").agg(pl.col("value").mean())
    a, b = (means.filter(skin_tone=tone).sort("seed")["value"].to_numpy() for tone in ("2", "9"))
    row = one(rows, "neutral_test", group="2 man", against="9 man", template=AT_REST)
    assert row["p_value"] == pytest.approx(stats.ttest_rel(a, b).pvalue)
    points = rows.filter(metric="perception.neutral_seed", group="2 man").sort("template")
    assert points["value"].to_list() == pytest.approx(a.tolist())


def test_every_pair_of_groups_has_a_scatter_of_its_seeds(neutral: tuple[pl.DataFrame, pl.DataFrame]):
    rows = neutral[1]
    figure = next(figure for figure in perception_figures(rows) if figure.name == "neutral-seeds")
    layers = [layer.get("data", {}).get("values", []) for layer in figure.spec(ink="black", width=600)["layer"]]
    (dots,) = [values for values in layers if values and "seed" in values[0]]
    correlations = rows.filter(metric="perception.neutral_group_r")["value"].to_list()
    assert len(dots) == 8 * len(correlations)
    panels = [[dot for dot in dots if dot["panel"] == name] for name in dict.fromkeys(dot["panel"] for dot in dots)]
    drawn = [np.corrcoef([dot["at"] for dot in own], [dot["value"] for dot in own])[0, 1] for own in panels]
    assert drawn == pytest.approx(correlations, abs=1e-3)


def test_control_words_have_densities_before_and_after_the_neutral_prompt(neutral: tuple[pl.DataFrame, pl.DataFrame]):
    rows = neutral[1]
    after = rows.filter(metric="perception.delta_density")
    before = rows.filter(metric="perception.density").filter(pl.col("subset").is_in(after["subset"].unique().implode()))
    assert set(after["subset"]) == set(before["subset"]) >= {"white", "female", "old"}
    assert after["template"].cast(pl.Float64).abs().max() < before["template"].cast(pl.Float64).max()


def test_recognised_is_the_share_of_a_group_whose_own_word_fits_best():
    images = photographs(120)
    sheet = matrix(images)
    judged = read_judged(sheet, DIMENSIONS)
    rows = results_table(bias_rows(judged, PRINTED), study="perception", model="m", dataset="d")
    words = ["white", "black", "asian"]
    best = judged.cosine[:, [judged.words.index(word) for word in words]].argmax(axis=1)
    shares = []
    for code, name in enumerate(("White", "Black", "Asian")):
        mine = (images["race"] == name).to_numpy()
        shares.append(100 * (best[mine] == code).mean())
        row = one(rows, "recognised", subset="race", group=name)
        assert row["value"] == pytest.approx(shares[-1])
        assert row["low"] < row["value"] < row["high"]
    (mean,) = rows.filter(pl.col("group").is_null(), metric="perception.recognised", subset="race").to_dicts()
    assert (mean["value"], mean["chance"]) == (pytest.approx(np.mean(shares)), pytest.approx(100 / 3))


def test_bands_of_ages_are_sampled_equally_with_compat_and_curves_alike_share_a_cluster():
    images = photographs(600)
    cells = rng(1).normal(0.2, 0.0005, (600, matrix(images).prompts.height))
    rising = (images["race"] == "Black").to_numpy()
    asked = (matrix(images).prompts["concept"] != "").to_numpy()
    cells[np.ix_(rising, asked)] += 0.01 * images["age"].to_numpy()[rising, None]
    sheet = matrix(images, cells)
    judged = read_judged(sheet, DIMENSIONS)
    sampled, every = (
        results_table(group_curve_rows(judged, options), study="perception", model="m", dataset="d")
        for options in (PRINTED, MeasureOptions(draws=100, shuffles=399))
    )
    fewest = images["age"].value_counts()["count"].min()
    slopes = sampled.filter(metric="perception.slope", concept="warmth")
    assert slopes["n"].sum() <= 4 * fewest < every.filter(metric="perception.slope", concept="warmth")["n"].sum() == 600
    assert slopes["note"].str.contains(f"{fewest} images of each band of ages").all()
    clusters = dict(every.filter(metric="perception.curve_cluster").select("group", "value").iter_rows())
    assert clusters["Black Male"] == clusters["Black Female"] != clusters["White Male"] == clusters["Asian Female"]
