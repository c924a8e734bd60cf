"""GRAS's scores, shares, tests and intersections beside a loop over images, traits and wordings with scipy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from scipy import stats

from beholder.core.results import Row
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.groups import all_grouped, read_answers, shuffled_shares
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS
from beholder.studies.study import MeasureOptions

TRAITS = {"kind": "positive", "cold": "negative", "calm": "positive", "loud": "negative", "wise": "positive"}
WORDINGS = ("T1", "T2", "T3", "T4", "T5")
GENDERS, RACES = ("Female", "Male"), ("Black", "Indian", "White")
OPTIONS = MeasureOptions(permutations=40)


@pytest.fixture(scope="module")
def matrix() -> ScoreMatrix:
    """Half the traits differ by gender or race a little, so that of several wordings some are called and some not."""
    rng, n = np.random.default_rng(11), 150
    prompts = gras_prompts(pl.DataFrame({"trait": list(TRAITS), "valence": list(TRAITS.values())})).table
    images = pl.DataFrame(
        {
            "image_id": [str(i) for i in range(n)],
            "part": ["fairface"] * n,
            "gender": rng.choice(GENDERS, n),
            "race": rng.choice(RACES, n),
        }
    )
    values = rng.beta(20, 20, (n, prompts.height, 1))
    values[(images["gender"] == "Female").to_numpy(), :10, 0] += 0.03
    values[(images["race"] == "Indian").to_numpy(), 20:, 0] -= 0.04
    return ScoreMatrix("gras", images, prompts, ("score",), values)


@pytest.fixture(scope="module")
def rows(matrix: ScoreMatrix) -> list[Row]:
    return list(GRAS.measures[0]({"gras": matrix}, OPTIONS))


def named(rows: list[Row], metric: str) -> list[Row]:
    return [row for row in rows if row.metric == f"gras.{metric}"]


def scores(matrix: ScoreMatrix, trait: str, wording: str, **group: str) -> np.ndarray:
    """The answers to one question about the images of some groups."""
    column = matrix.prompts["prompt_id"].to_list().index(f"{trait}|{wording}")
    mine = [
        place
        for place, row in enumerate(matrix.images.iter_rows(named=True))
        if all(row[attribute] == value for attribute, value in group.items())
    ]
    return matrix.values[mine, column, 0]


def scipys(matrix: ScoreMatrix) -> Iterator[tuple[str, str, str, float, float]]:
    """Attribute, trait, wording, statistic and p of scipy's Welch tests."""
    for attribute, groups in (("gender", GENDERS), ("race", RACES)):
        for trait in TRAITS:
            for wording in WORDINGS:
                parts = [scores(matrix, trait, wording, **{attribute: group}) for group in groups]
                if len(parts) == 2:
                    found = stats.ttest_ind(*parts, equal_var=False)
                else:
                    found = stats.f_oneway(*parts, equal_var=False)
                yield attribute, trait, wording, found.statistic, found.pvalue


def test_every_test_is_scipys(matrix: ScoreMatrix, rows: list[Row]):
    found = {(row.subset, row.concept, row.template): row for row in named(rows, "welch")}
    expected = list(scipys(matrix))
    assert len(found) == len(expected) == 2 * 5 * 5
    for attribute, trait, wording, statistic, p_value in expected:
        row = found[attribute, trait, wording]
        assert (row.value, row.p_value) == pytest.approx((statistic, p_value))


def simes(p_values: list[float]) -> float:
    return min(len(p_values) * p / (place + 1) for place, p in enumerate(sorted(p_values)))


def test_scores_count_the_traits_that_are_called(matrix: ScoreMatrix, rows: list[Row]):
    """Published: any wording has p ≤ 0.05. Corrected: Simes over wordings, then Benjamini–Hochberg over traits."""
    p_values = {(a, t): [] for a in ("gender", "race") for t in TRAITS}
    for attribute, trait, _, _, p_value in scipys(matrix):
        p_values[attribute, trait].append(p_value)
    plain, corrected = [], []
    for attribute in ("gender", "race"):
        mine = [p_values[attribute, trait] for trait in TRAITS]
        plain.append(100 * np.mean([min(each) <= 0.05 for each in mine]))
        adjusted = stats.false_discovery_control([simes(each) for each in mine])
        corrected.append(100 * np.mean(adjusted <= 0.05))
    assert 0 < np.mean(corrected) < np.mean(plain), "corrections that change nothing would prove nothing"
    found = {row.subset: row.value for row in named(rows, "biased_traits")}
    assert [found["gender"], found["race"]] == pytest.approx(plain)
    for metric, value in (("bias_score", np.mean(plain)), ("bias_score_corrected", np.mean(corrected))):
        (row,) = named(rows, metric)
        assert (row.value, row.n) == (pytest.approx(value), 5)
        assert row.note.endswith("nothing to compare for age, skin_tone")
    (complement,) = named(rows, "fairness_score")
    assert complement.value == pytest.approx(100 - np.mean(plain))


def test_the_expected_score_has_the_middle_of_its_shuffles(matrix: ScoreMatrix, rows: list[Row]):
    grouped = all_grouped(read_answers({"gras": matrix}))
    again = shuffled_shares(grouped, OPTIONS.rng(), 40)[:, :, 0].mean(axis=1)
    (row,) = named(rows, "bias_score_expected")
    assert (row.value, row.low, row.high) == pytest.approx((again.mean(), *np.quantile(again, [0.025, 0.975])))


def test_valence_shares_count_the_traits_above_the_mean_in_every_wording(matrix: ScoreMatrix, rows: list[Row]):
    found = {(row.group, row.concept): row for row in named(rows, "valence_share")}
    assert len(found) == 2 * (2 + 3)
    for group, valence in found:
        attribute = "gender" if group in GENDERS else "race"
        mine = [trait for trait in TRAITS if TRAITS[trait] == valence]
        above = [
            all(
                scores(matrix, trait, wording, **{attribute: group}).mean() > scores(matrix, trait, wording).mean()
                for wording in WORDINGS
            )
            for trait in mine
        ]
        assert found[group, valence].value == pytest.approx(100 * np.mean(above))
        assert found[group, valence].n == len(mine)


def test_intersections_lie_apart_by_what_their_notes_say(matrix: ScoreMatrix, rows: list[Row]):
    """By itself: positive less negative, of the images where the labels cross, against the mean of all."""
    raw = {}
    for gender in GENDERS:
        for race in RACES:
            by_valence = [
                np.mean(
                    [
                        scores(matrix, trait, wording, gender=gender, race=race)
                        for trait in TRAITS
                        for wording in WORDINGS
                        if TRAITS[trait] == valence
                    ]
                )
                for valence in ("positive", "negative")
            ]
            raw[f"{gender} × {race}"] = by_valence[0] - by_valence[1]
    found = {row.group: row for row in named(rows, "intersection")}
    assert set(found) == set(raw)
    said = {group: float(row.note.split("; ")[1].split(" points")[0]) / 100 for group, row in found.items()}
    for first, second in zip(list(raw)[:-1], list(raw)[1:], strict=True):
        assert said[first] - said[second] == pytest.approx(raw[first] - raw[second], abs=2e-4)
    for group, row in found.items():
        assert abs(row.value) <= abs(said[group]) + 1e-4, "pooling draws towards the mean"
        assert row.low < row.value < row.high
