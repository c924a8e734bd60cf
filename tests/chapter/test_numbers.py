"""Numbers as text."""

from __future__ import annotations

import pytest

from beholder.chapter import numbers
from beholder.chapter.numbers import (
    Result,
    count,
    drawn,
    listed,
    options,
    percent,
    picture,
    plural,
    ratio_decimals,
    span,
)


def row(value: float, low: float | None = None, high: float | None = None, note: str | None = None) -> Result:
    return {"value": value, "low": low, "high": high, "note": note}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.234, "23 %"),
        (0.051, "5.1 %"),
        (0.0023, "0.23 %"),
        (1e-6, "< 0.01 %"),
    ],
)
def test_percentages_have_the_decimals_they_deserve(value: float | None, text: str) -> None:
    assert percent(value) == text


def test_a_bound_that_excludes_1_is_not_rounded_to_1() -> None:
    assert ratio_decimals(row(0.98, 0.97, 0.998)) == 3


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (numbers.percent_range(0.2, 0.26), "20–26 %"),
        (numbers.times(3.21), "3.2"),
        (numbers.times(85.2), "85"),
        (numbers.points(0.0994), "9.9"),
        (numbers.points(-0.0084), "−0.8"),
        (numbers.points(None), "—"),
        (numbers.signed(0.035), "+3.5"),
        (numbers.signed(-0.047), "−4.7"),
        (numbers.row_p_value({"p_value": 0.0312}), "0.031"),
        (numbers.row_p_value({"p_value": 1e-9}), "< 0.001"),
        (numbers.row_p_value({"p_value": 0.003, "p_at_most": True}), "≤ 0.003"),
        (numbers.row_p_value({"p_value": None}), "—"),
        (numbers.quantity(0.5, "probability"), "50 %"),
        (numbers.quantity(-0.081, "probability", 0), "−8.1 points"),
        (numbers.quantity(0.62, "ratio", 1), "0.62"),
        (numbers.number(1, "number differs", "numbers differ"), "1 number differs"),
        (numbers.number(1400, "image"), "1,400 images"),
        (numbers.plural("60 and over"), "60 and over"),
    ],
)
def test_numbers_as_text(made: str, text: str) -> None:
    assert made == text


def test_chance_tells_among_how_many() -> None:
    assert options({**row(0.5), "chance": 1 / 109}) == 109
    assert options(row(0.5)) is None


def test_equal_values_make_no_range() -> None:
    assert (span([0.5, 0.5]), span([0.2, 0.6])) == ("50 %", "20–60 %")


def test_an_interval_is_never_printed_as_if_it_had_no_width():
    """Small shares get the decimals that tell the ends apart."""
    row = {"value": 0.0006, "low": 0.0001, "high": 0.0012}
    assert numbers.percent_range(row["low"], row["high"]) == "0.01–0.12 %"
    assert numbers.percent_range(0.00061, 0.00064) == "0.061–0.064 %"
    assert numbers.percent(row["value"], numbers.decimals_for(row)) == "0.06 %"
    assert numbers.decimals_for({"value": 0.0006, "low": 0.00058, "high": 0.00062}) == 3


def test_a_ratio_over_nothing_is_open_ended():
    row = {"value": 1e6, "low": 1.2, "high": 1e6}
    assert (numbers.ratio(row["value"]), numbers.ratio_range(row)) == ("∞", "1.20–∞")


# Words


@pytest.mark.parametrize(
    ("names", "text"), [(["a"], "a"), (["a", "b"], "a and b"), (["a and b", "c, d", "e"], "a and b, c, d and e")]
)
def test_names_are_listed_as_a_sentence_has_them(names: list[str], text: str):
    assert listed(names) == text


def test_small_numbers_are_words():
    assert [count(number) for number in (0, 12, 13)] == ["no", "twelve", "13"]


def test_only_known_groups_have_a_plural():
    assert [plural(group) for group in ("man", "woman", "humans")] == ["men", "women", "humans"]


def test_the_embedded_world_is_drawn():
    assert drawn("glasshouse-faces")
    assert [picture({"dataset": name}) for name in ("glasshouse", "apa")] == ["drawing", "photograph"]
