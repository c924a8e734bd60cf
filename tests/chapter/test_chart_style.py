"""Colours that stay the same everywhere, and legends that fit on a phone."""

from __future__ import annotations

import pytest

from beholder.chapter.chart_style import MEN, SERIES, WOMEN, config, legend_columns, series_colours


def test_women_and_men_keep_their_colours_in_any_order():
    assert series_colours(["man", "woman"]) == [MEN, WOMEN]
    assert series_colours(["woman"]) == [WOMEN]


def test_others_get_the_series_and_start_again_after_the_last():
    names = [f"model {number}" for number in range(len(SERIES) + 1)]
    assert series_colours(names) == [*SERIES, SERIES[0]]
    assert series_colours(["woman", "nobody"]) == list(SERIES[:2])


@pytest.mark.parametrize(("names", "columns"), [(["a", "b"], 2), (["n" * 17] * 4, 2), (["n" * 300], 1), ([], 1)])
def test_a_legend_has_as_many_columns_as_fit(names: list[str], columns: int):
    assert legend_columns(names) == columns


def test_all_text_and_lines_have_the_ink():
    made = config("#123456")
    axis = made["axis"]
    assert {axis[key] for key in axis if key.endswith("Color")} == {"#123456"}
    assert made["title"]["color"] == made["legend"]["labelColor"] == "#123456"
    assert made["background"] is None
