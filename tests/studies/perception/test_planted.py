"""Known truth against what the audit found: only for the reference model on the drawn design."""

from __future__ import annotations

import polars as pl
import pytest
from captions import WARM_RATES
from recovered import SHARES, WARMTH

from beholder.studies.perception.chapter import REFERENCE, perception_planted


def test_each_dimension_is_told_with_what_was_planted(matched: pl.DataFrame):
    assert perception_planted(matched) is None
    table = perception_planted(matched.with_columns(model=pl.lit(REFERENCE)))
    told = {row[0].text: (row[1].text, row[3].text) for row in table.rows}
    assert told["Warmth"] == ("more", "as planted")
    assert told["Communion −"] == ("less", "not found")  # only warm words were shifted in this world
    assert told["Competence"] == ("nothing", "as planted")
    assert "No effect of gender, skin tone, age, light or pose was planted" in table.notes[0]


def test_the_share_of_warm_words_at_each_step_is_the_planted_rate():
    assert {int(row["group"]): pytest.approx(row["value"]) for row in SHARES} == WARM_RATES


def test_every_planted_value_has_a_key_of_its_own():
    keys = [(row["metric"], row["group"], row["concept"]) for row in WARMTH]
    assert len(set(keys)) == len(keys) == 9
