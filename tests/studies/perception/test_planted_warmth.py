"""Smiling and warmth: what the captions imply is the rate that was planted."""

from __future__ import annotations

import pytest

from beholder.glasshouse.planted import WARM_RATES
from beholder.studies.perception.planted_warmth import PLANTED, SHARES


def test_the_share_of_warm_words_at_each_step_is_the_planted_rate():
    assert {int(row["group"]): pytest.approx(row["value"]) for row in SHARES} == WARM_RATES


def test_every_planted_value_has_a_key_of_its_own():
    keys = [(row["metric"], row["group"], row["concept"]) for row in PLANTED]
    assert len(set(keys)) == len(keys) == 9
