"""The planted traits: a valid table of GRAS's own words, and values that follow from it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from beholder.glasshouse.faces import AGE_BANDS, faces
from beholder.glasshouse.planted_traits import ATTRIBUTES, PLANTED, PLANTED_TRAITS, implied, p_yes, sway_signs
from beholder.studies.gras.prompts import read_traits


def test_words_and_valences_are_those_of_gras():
    known = dict(read_traits().select("trait", "valence").iter_rows())
    assert len({planted.trait for planted in PLANTED_TRAITS}) == 24
    assert all(known[planted.trait] == planted.valence for planted in PLANTED_TRAITS)
    assert Counter(planted.valence for planted in PLANTED_TRAITS) == {"positive": 12, "negative": 12}


def test_half_are_controls_and_each_attribute_has_either_direction_of_either_valence():
    assert Counter(planted.attribute for planted in PLANTED_TRAITS) == {None: 12, "gender": 4, "skin_tone": 4, "age": 4}
    dealt = Counter((p.attribute, p.valence, p.effect > 0) for p in PLANTED_TRAITS if p.attribute)
    assert set(dealt.values()) == {1}


def test_sizes_are_as_stated():
    controls = [planted for planted in PLANTED_TRAITS if planted.attribute is None]
    assert all(planted.effect == 0 and 0.3 <= planted.base <= 0.7 for planted in controls)
    sizes = sorted(abs(planted.effect) for planted in PLANTED_TRAITS if planted.attribute)
    assert sizes[0] == 0.04
    assert all(0.10 <= size <= 0.25 for size in sizes[1:])


def test_it_is_always_a_probability_with_room_on_both_sides():
    extremes = [
        p_yes(planted.trait, who, tone, age, pose=pose, lighting=light)
        for planted in PLANTED_TRAITS
        for who in ("woman", "man")
        for tone in (1, 10)
        for age in (20, 80)
        for pose in (-2, 2)
        for light in (-2, 2)
    ]
    assert min(extremes) > 0.1
    assert max(extremes) < 0.9


@pytest.mark.parametrize("planted", PLANTED_TRAITS, ids=lambda planted: planted.trait)
def test_implied_is_the_plain_average_over_the_faces(planted):
    for attribute in ATTRIBUTES:
        groups = {row[attribute] for row in faces()}
        means = {
            group: np.mean([_planted(planted.trait, row) for row in faces() if row[attribute] == group])
            for group in groups
        }
        for group, mean in means.items():
            found = implied("gras.group_mean", attribute, group, planted.trait)
            assert found == pytest.approx(mean)
        gap = implied("gras.largest_gap", attribute, "", planted.trait)
        assert gap == pytest.approx(max(means.values()) - min(means.values()))
        assert gap == pytest.approx(abs(planted.effect) if planted.attribute == attribute else 0)


def _planted(trait, row):
    scene = {"pose": row["pose"], "lighting": row["lighting"]}
    return p_yes(trait, row["gender"], int(row["skin_tone"]), row["age_years"], **scene)


def test_an_effect_is_woman_less_man_tone_ten_less_one_old_less_young():
    assert p_yes("brave", "woman", 5, 40) - p_yes("brave", "man", 5, 40) == pytest.approx(0.20)
    assert p_yes("arrogant", "man", 10, 40) - p_yes("arrogant", "man", 1, 40) == pytest.approx(-0.20)
    assert p_yes("optimistic", "man", 5, 80) - p_yes("optimistic", "man", 5, 20) == pytest.approx(0.20)
    assert p_yes("optimistic", "man", 5, AGE_BANDS["50-59"]) == pytest.approx(0.55)


def test_a_word_that_was_not_planted_says_yes_as_often_as_no():
    assert p_yes("heroic", "woman", 9, 70) == 0.5


def test_words_sway_differently():
    assert len({sway_signs(planted.trait) for planted in PLANTED_TRAITS}) == 4


def test_planted_rows_look_like_results():
    assert all(set(row) == {"metric", "subset", "group", "concept", "value", "note"} for row in PLANTED)
    assert Counter(row["metric"] for row in PLANTED) == {"gras.largest_gap": 72, "gras.group_mean": 72}
    assert sum(row["value"] > 0 for row in PLANTED if row["metric"] == "gras.largest_gap") == 12


def test_nothing_is_planted_for_another_metric():
    with pytest.raises(ValueError, match=r"gras\.welch"):
        implied("gras.welch", "gender", "", "brave")
