"""Claims: what a study says in one world, and whether it is true there."""

from __future__ import annotations

import numpy as np
import pytest

from beholder.calibration.claims import Cell, Said, claims, measured, true_values
from beholder.core.results import Row
from beholder.studies.worlds import GENDER_ONLY, NOISE, SMALLEST, UNFAIR


def gap(low: float, high: float, verdict: str = "none found", **more: object) -> Row:
    return Row("gaps.gap", 0.0, 60, "score", subset="gender", low=low, high=high, verdict=verdict)._replace(**more)  # type: ignore[arg-type]


def said(rows: list[Row], world: str = NOISE, truth: dict[tuple[str | None, ...], float] | None = None) -> Said:
    more = [gap(0, 0, "too little data")._replace(subset="race", concept="other", low=None, high=None)]
    return claims(Cell("gaps", "30 + 30", world), rows + more, truth or {})["gaps.gap"]


def test_a_difference_found_in_noise_is_a_false_alarm_and_its_interval_misses():
    assert said([gap(-1, 1)]) == Said(null=1, interval=1)
    assert said([gap(-1, 1), gap(1, 2, "difference found", concept="b")]) == Said(null=1, alarm=1, interval=1, missed=1)


def test_what_is_declared_true_of_a_subset_is_found_there_and_a_false_alarm_elsewhere():
    assert said([gap(1, 2, "difference found")], GENDER_ONLY) == Said(true=1, found=1)
    race = gap(1, 2, "difference found", subset="race")
    assert said([gap(-1, 1), race], GENDER_ONLY) == Said(null=1, alarm=1, true=1, interval=1, missed=1)


def test_where_there_is_an_effect_intervals_are_held_against_the_value_of_a_large_draw_either_way_round():
    row = gap(1, 2, "difference found", group="a", against="b")
    place = ("gaps.gap", "gender", "a", "b", None, None, None)
    turned = ("gaps.gap", "gender", "b", "a", None, None, None)
    assert said([row], GENDER_ONLY, {place: 1.5}).missed == 0
    assert said([row], GENDER_ONLY, {place: 2.5}).missed == 1
    assert said([row], GENDER_ONLY, {turned: -1.5}) == Said(true=1, found=1, interval=1)


def test_the_interval_within_strata_decides():
    assert said([gap(1, 2), gap(-1, 1, variant="within race")]) == Said(null=1, interval=1)


def test_rows_of_groups_that_are_too_small_say_nothing():
    assert said([]) == Said()


def test_a_published_p_value_is_counted_apart():
    cell = Cell("gaps", "30 + 30", NOISE)
    found = claims(cell, measured(cell, np.random.default_rng(0)), {})
    assert found["gaps.paper"] == Said(tests=1, small=1)
    assert found["gaps.headline"].null == 1


@pytest.mark.parametrize("design", [SMALLEST, "5 + 40", "unbalanced strata"])
def test_a_wholly_unfair_model_is_found_and_a_claim_that_is_not_made_is_missed(design: str):
    cell = Cell("gaps", design, UNFAIR)
    found = claims(cell, measured(cell, np.random.default_rng(0)), {})
    assert found["gaps.gap"].found == found["gaps.headline"].found == 1
    assert claims(cell, [gap(-1, 1)], {})["gaps.headline"] == Said(true=1)


def test_true_values_are_those_of_very_many_people():
    values = true_values(Cell("gaps", "30 + 30", GENDER_ONLY))
    levels = np.random.default_rng([7, *GENDER_ONLY.encode()]).standard_normal((2, 2))[0]
    for column, level in enumerate(levels):
        assert values["gaps.gap", "gender", "man", "woman", str(column), None, None] == pytest.approx(-level, abs=0.04)
