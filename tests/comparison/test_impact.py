"""Impact ratios: equal to fairlearn's, and decided neither by noise nor against an unfair model."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from fairlearn.metrics import MetricFrame, demographic_parity_ratio, selection_rate

from beholder.comparison.groups import crossings, groups_of, people_of
from beholder.comparison.impact import FOUR_FIFTHS, Impact, impacts, selected

RNG = np.random.default_rng(7)


def table(n: int, rng: np.random.Generator) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "image_id": [str(i) for i in range(n)],
            "gender": rng.choice(["woman", "man"], n).tolist(),
            "race": rng.choice(["Black", "White", "Asian"], n).tolist(),
        }
    )


def measured(values: np.ndarray, images: pl.DataFrame, shuffles: int = 199) -> list[Impact]:
    groups = groups_of(images, ["gender", "race"])
    every = [*groups, *(cells for _, _, cells in crossings(groups))]
    return list(impacts(values, every, people_of(images), np.random.default_rng(1), shuffles=shuffles))


def test_rates_and_ratios_are_those_of_fairlearn_by_category_and_intersection() -> None:
    images, scores = table(300, RNG), RNG.normal(size=(300, 2))
    scores[images["gender"].to_numpy() == "woman"] -= 0.5
    found = measured(scores, images)
    for column in (0, 1):
        chosen = (scores[:, column] > np.median(scores[:, column])).astype(int)
        for by, labels in {
            "gender": images["gender"],
            "race": images["race"],
            "gender × race": images["gender"] + " × " + images["race"],
        }.items():
            frame = MetricFrame(
                metrics=selection_rate, y_true=chosen, y_pred=chosen, sensitive_features=labels.to_list()
            )
            mine = [one for one in found if one.column == column and one.groups.attribute == by]
            assert {one.group: one.rate for one in mine} == pytest.approx(frame.by_group.to_dict())
            ratios = [one.ratio.value for one in mine if one.ratio]
            parity = demographic_parity_ratio(chosen, chosen, sensitive_features=labels.to_list())
            assert min(ratios) == pytest.approx(parity)
            assert [one.group for one in mine if one.ratio is None] == [frame.by_group.idxmax()]


OF_AIF360 = {"woman": 5 / 6, "b": 11 / 12, "c": 5 / 6, "man × b": 1, "man × c": 1, "woman × a": 1}
OF_AIF360 |= {"woman × b": 5 / 6, "woman × c": 2 / 3}
"""`disparate_impact` of aif360 0.6.1 for the people below, each group against the most selected one."""


def test_ratios_are_those_that_aif360_gave_for_the_same_people() -> None:
    people = range(66)
    gender, race = [("woman", "man")[i % 2] for i in people], ["abc"[i // 2 % 3] for i in people]
    images = pl.DataFrame({"image_id": [str(i) for i in people], "gender": gender, "race": race})
    scores = np.array([i * 37 % 101 + 10 * (i % 2) + 3 * (i // 2 % 3) for i in people], np.float64)
    found = measured(scores[:, None], images)
    assert {one.group: one.ratio.value for one in found if one.ratio} == pytest.approx(OF_AIF360)


def test_an_unfair_model_breaks_four_fifths_and_a_constant_one_treats_all_alike() -> None:
    images = table(120, RNG)
    unfair = np.where(images["gender"].to_numpy() == "woman", 0.0, 1.0)[:, None]
    (women,) = [one for one in measured(unfair, images) if one.group == "woman"]
    assert women.ratio is not None
    assert (women.rate, women.ratio.value, women.ratio.verdict) == (0.0, 0.0, "difference found")
    assert women.ratio.high < FOUR_FIFTHS
    same = [one.ratio for one in measured(np.ones((120, 1)), images) if one.ratio]
    assert {one.value for one in same} == {1.0}
    assert {one.verdict for one in same} == {"none found"}
    assert all(one.low < 1 < one.high for one in same)


def test_each_person_counts_once_and_without_a_score_not_at_all() -> None:
    images = pl.DataFrame({"image_id": list("abcde"), "person": list("11234")})
    marks = selected(np.array([[9.0], [0.0], [3.0], [2.0], [np.nan]]), people_of(images))
    assert np.nan_to_num(marks[:, 0], nan=-1).tolist() == [1, 1, 0, 0, -1]


@pytest.mark.slow
def test_noise_breaks_the_four_fifths_rule_in_at_most_one_of_twenty_audits() -> None:
    """Three prompts by gender, race and both, of 90 people; a rule fails if a whole interval lies below 0.8."""
    broken = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found = measured(rng.normal(size=(90, 3)), table(90, rng), 99)
        broken += any(one.ratio.high < FOUR_FIFTHS for one in found if one.ratio)
    assert broken / 40 <= 0.05


def test_an_interval_leaves_out_1_where_the_test_does_and_nowhere_else() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        images = table(60, rng)
        for one in measured(rng.normal(size=(60, 4)), images):
            if one.ratio and not np.isnan(one.ratio.low):
                assert (one.ratio.low <= 1 <= one.ratio.high) == (one.ratio.verdict != "difference found")
