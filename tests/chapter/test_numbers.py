from __future__ import annotations

import pytest

from beholder.chapter import numbers
from beholder.chapter.numbers import Result, chance, excludes, options, percent, ratio_decimals, span


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
    ("low", "high", "off"), [(0.5, 0.7, True), (1.1, 1.2, True), (0.9, 1.1, False), (1.0, 1.1, False)]
)
def test_an_interval_excludes_what_lies_outside_it(low: float, high: float, off: bool) -> None:
    assert excludes(row(1.0, low, high), 1.0) is off


def test_no_interval_excludes_nothing() -> None:
    assert not excludes(row(0.5), 1.0)


def test_chance_is_a_number_of_its_own_and_tells_among_how_many() -> None:
    known = {**row(0.5), "chance": 1 / 109}
    assert (chance(known), options(known)) == (1 / 109, 109)
    assert (chance(row(0.5)), options(row(0.5))) == (None, None)


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
