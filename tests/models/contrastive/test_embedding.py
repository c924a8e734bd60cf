"""Batches keep their order, unusable vectors are told by position, cut texts are noted once."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest

from beholder.core.errors import UnusableScore
from beholder.models.scorer import CutTexts, embed_in_batches, unit_rows


def doubled(part: Sequence[int]) -> np.ndarray:
    return np.array([[1.0, 2.0 * number] for number in part])


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_batches_keep_the_order(size: int) -> None:
    rows = embed_in_batches(range(7), size, doubled, kind="image")
    np.testing.assert_allclose(rows[:, 1] / rows[:, 0], 2 * np.arange(7), rtol=1e-6)


def test_nothing_asked_gives_no_rows() -> None:
    assert embed_in_batches([], 4, doubled, kind="image").shape == (0, 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_an_unusable_row_is_told_by_its_position(bad: float) -> None:
    vectors = np.ones((5, 3))
    vectors[[1, 3]] = bad
    with pytest.raises(UnusableScore, match=r"2 text.*position 1, 3") as raised:
        unit_rows(vectors, kind="text")
    assert raised.value.positions == (1, 3)
    assert pickle.loads(pickle.dumps(raised.value)).positions == (1, 3)


def test_a_cut_text_is_noted_once_and_shortly() -> None:
    cut = CutTexts(limit=8)
    cut.record(["short", "long" * 100], [8, 9])
    cut.record(["long" * 100], [9])
    assert len(cut.notes) == 1
    assert len(cut.notes[0]) < 200
