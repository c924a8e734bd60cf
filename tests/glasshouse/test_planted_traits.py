"""The planted traits: a valid table of GRAS's own words, and values that follow from it."""

from __future__ import annotations

from collections import Counter

import pytest

from beholder.glasshouse.planted import PLANTED_TRAITS, p_yes, sway_signs
from beholder.glasshouse.world import AGE_BANDS
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


def test_an_effect_is_woman_less_man_tone_ten_less_one_old_less_young():
    assert p_yes("brave", "woman", 5, 40) - p_yes("brave", "man", 5, 40) == pytest.approx(0.20)
    assert p_yes("arrogant", "man", 10, 40) - p_yes("arrogant", "man", 1, 40) == pytest.approx(-0.20)
    assert p_yes("optimistic", "man", 5, 80) - p_yes("optimistic", "man", 5, 20) == pytest.approx(0.20)
    assert p_yes("optimistic", "man", 5, AGE_BANDS["50-59"]) == pytest.approx(0.55)


def test_a_word_that_was_not_planted_says_yes_as_often_as_no():
    assert p_yes("heroic", "woman", 9, 70) == 0.5


def test_words_sway_differently():
    assert len({sway_signs(planted.trait) for planted in PLANTED_TRAITS}) == 4
