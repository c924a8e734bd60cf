"""Colours that stay the same everywhere, and legends that fit on a phone."""

from __future__ import annotations

import pytest

from beholder.chapter.chart_style import MEN, QUIET, SERIES, WOMEN, config, legend_columns, series_colours


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


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("paper", ["#fbfaf8", "#16181b"])
@pytest.mark.parametrize("colour", [WOMEN, MEN, QUIET, *SERIES])
def test_marks_and_intervals_stand_out_from_light_and_dark_pages(colour: str, paper: str):
    dark, light = sorted(map(luminance, (colour, paper)))
    assert (light + 0.05) / (dark + 0.05) >= 3
