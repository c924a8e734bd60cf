"""Bounds that leave out 0 are not printed as 0, in sentences, on cards and in tables."""

from __future__ import annotations

import pytest

from beholder.chapter.numbers import people, points_range
from beholder.report.scorecard import interval_in_words


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.0002, 0.066, "0.02 to 6.60"), (-0.066, -0.00003, "−6.600 to −0.003"), (-0.0002, 0.066, "0.0 to 6.6")],
)
def test_a_bound_beside_0_is_told_from_it(low: float, high: float, text: str) -> None:
    row = {"value": 0.03 if high > 0 else -0.03, "low": low, "high": high, "unit": "probability", "landmark": 0.0}
    assert interval_in_words(row) == text
    assert points_range(row).replace("–", " to ") == text


def test_groups_are_called_people() -> None:
    assert [people(name) for name in ("woman", "20-29")] == ["women", "those labelled 20-29"]
