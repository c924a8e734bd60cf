"""Each channel is read as the kind of number that a study asks for, or refused."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest

from beholder.core.errors import BeholderError
from beholder.scores.score_matrix import CHANNELS, UNITS, Kind, Quantity, ScoreMatrix, channel_for

CELLS = np.linspace(-2, -0.5, 12, dtype=np.float32).reshape(3, 4)
SCALE = {"logit_scale": 100.0, "logit_bias": -10.0}


def quantity(kind: Kind, task: str, channels: Mapping[str, np.ndarray], settings: Mapping[str, float]) -> Quantity:
    images, prompts = (pl.DataFrame({"number": range(count)}) for count in CELLS.shape)
    values = np.stack(list(channels.values()), axis=2)
    return ScoreMatrix(task, images, prompts, tuple(channels), values, dict(settings)).quantity(kind)


def test_a_cosine_becomes_a_logit_by_the_checkpoints_scale_and_bias():
    result = quantity("logit", "task", {"cosine": CELLS}, SCALE)
    assert result.cells.dtype == np.float64
    np.testing.assert_array_equal(result.cells, 100.0 * CELLS.astype(np.float64) - 10.0)
    np.testing.assert_array_equal(quantity("logit", "task", {"cosine": CELLS}, {}).cells, CELLS)


@pytest.mark.parametrize("name", [name for name in CHANNELS["logit"] if name != "cosine"])
def test_a_logit_is_used_unchanged_whatever_the_scale(name: str):
    result = quantity("logit", "task", {"refused": CELLS * 0, name: CELLS}, SCALE)
    np.testing.assert_array_equal(result.cells, CELLS)


@pytest.mark.parametrize("kind", ["probability", "ranking", "cosine"])
def test_a_log_probability_becomes_a_probability(kind: Kind):
    result = quantity(kind, "task", {"log_p_yes": CELLS}, {})
    np.testing.assert_allclose(result.cells, np.exp(CELLS), rtol=1e-6)
    assert result.is_probability
    assert result.unit == "P(Yes)"


def test_a_probability_keeps_its_precision():
    assert quantity("probability", "task", {"log_p_yes": CELLS}, {}).cells.dtype == np.float32


def test_an_imported_score_is_not_known_to_be_a_probability():
    assert not quantity("probability", "task", {"score": CELLS}, {}).is_probability


def test_the_best_channel_is_taken():
    assert channel_for("ranking", ["area", "presence"]) == "presence"
    assert channel_for("cosine", ["log_p_yes", "match_logit"]) == "match_logit"


def test_presence_is_no_logit():
    with pytest.raises(BeholderError, match=r"task needs a logit, and the model gives only presence, area"):
        quantity("logit", "task", {"presence": CELLS, "area": CELLS}, {})


def test_every_channel_has_a_unit():
    assert {name for names in CHANNELS.values() for name in names} <= set(UNITS)
