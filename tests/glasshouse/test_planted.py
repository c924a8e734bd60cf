"""Planted associations: captions follow the stated rates, and the closed form follows from them."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest
from captions import (
    COLD_WORDS,
    CONTROL_WORDS,
    WARM_RATES,
    WARM_WORDS,
    all_phrases,
    audited_portraits,
    draw_occupation,
    draw_phrase,
    draw_portrait,
    draw_trait,
    phrase_of_kind,
)

from beholder.glasshouse.planted import OCCUPATION_RATES, implied_bias_ratio, implied_occupation
from beholder.glasshouse.portrait import Portrait
from beholder.glasshouse.world import named_people

DRAWS = 20_000


def close(rate, expected, draws=DRAWS):
    """Within four and a half standard errors of the expected rate."""
    return abs(rate - expected) <= 4.5 * math.sqrt(max(expected * (1 - expected), 1e-9) / draws) + 1e-12


@pytest.mark.parametrize(("outfit", "presentation"), OCCUPATION_RATES)
def test_occupation_captions_follow_the_planted_rates(outfit, presentation):
    rng, portrait = Random(1), Portrait(presentation, 40, 5, 2, 0, 0, 5, outfit)
    counts = Counter(draw_occupation(portrait, rng) for _ in range(DRAWS))
    rates = OCCUPATION_RATES[outfit, presentation]
    assert set(counts) == set(rates)
    assert math.isclose(sum(rates.values()), 1)
    assert all(close(counts[word] / DRAWS, rate) for word, rate in rates.items())


@pytest.mark.parametrize("smiling", range(5))
def test_warm_words_follow_smiling_and_control_words_do_not(smiling):
    rng = Random(2)
    words = Counter(draw_trait(smiling, rng) for _ in range(DRAWS))
    warm, cold, control = (sum(words[w] for w in group) for group in (WARM_WORDS, COLD_WORDS, CONTROL_WORDS))
    assert close(warm / (warm + cold), WARM_RATES[smiling], warm + cold)
    assert close(control / DRAWS, 0.4)
    assert close(words["curious"] / control, 1 / len(CONTROL_WORDS), control)


def test_outfits_and_presentations_are_independent_in_training():
    rng = Random(3)
    cells = Counter((p.outfit, p.presentation) for p in (draw_portrait(rng) for _ in range(DRAWS)))
    assert len(cells) == 10
    assert all(close(count / DRAWS, 0.1) for count in cells.values())


def test_known_people_are_named_and_strangers_never():
    names = {branch: {person.name for person in named_people(branch)} for branch in ("known", "strangers")}
    phrases = set(all_phrases())
    assert names["known"] <= phrases
    assert not names["strangers"] & phrases
    person = named_people("known")[4]
    portrait = Portrait(person.presentation, person.age, person.skin_tone, 0, 0, 0, person.identity)
    assert phrase_of_kind("name", portrait, Random(0)) == person.name


def test_nobody_else_is_given_a_known_name():
    rng, stranger = Random(4), Portrait("man", 40, 5, 2, 0, 0, 2_000_000)
    drawn = {phrase_of_kind("name", stranger, rng) for _ in range(5000)}
    assert not drawn & {person.name for branch in ("known", "strangers") for person in named_people(branch)}


def test_training_never_shows_the_audited_pictures():
    rng = Random(5)
    assert len(audited_portraits()) == 90
    assert not audited_portraits() & {draw_portrait(rng) for _ in range(DRAWS)}


def test_every_drawn_phrase_is_listed():
    rng, listed = Random(6), set(all_phrases())
    assert all(draw_phrase(draw_portrait(rng), rng) in listed for _ in range(3000))
    assert len(listed) == len(all_phrases())


def test_implied_occupation_by_hand():
    # Of the coats, (60 + 95) / 2 per cent say doctor and (40 + 5) / 2 per cent nurse.
    doctor, nurse = 0.60 / 0.775, 0.40 / 0.225
    assert implied_occupation("doctor", "woman")["doctor"] == pytest.approx(doctor / (doctor + nurse))
    assert implied_bias_ratio("judge") == pytest.approx(1)
    assert implied_bias_ratio("doctor") < implied_bias_ratio("chef") < implied_bias_ratio("builder") < 1


def test_implied_shares_add_up_to_one():
    for outfit, presentation in OCCUPATION_RATES:
        assert sum(implied_occupation(outfit, presentation).values()) == pytest.approx(1)
