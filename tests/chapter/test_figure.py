"""Figures: numbered and named after their model where there are several, described for who hears the page."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest

from beholder.chapter.chart_parts import dots
from beholder.chapter.figure import Figure, each_model, sentence, whose
from beholder.core.results import Row, results_table

ROWS = [Row("s.share", 0.2, 9, "probability", group="woman", concept="kind", low=0.1, high=0.3)]
ONE = results_table(ROWS, study="s", model="m", dataset="d")
TWO = pl.concat([ONE, ONE.with_columns(model=pl.lit("n"))])


def drawn(part: pl.DataFrame) -> Iterator[Figure]:
    assert part["model"].n_unique() == 1
    yield Figure("gaps", "women get less", "How to read it.", dots(part.to_dicts()), "gaps")


@pytest.mark.parametrize(
    ("part", "expected"),
    [(ONE, [("gaps", "Women get less")]), (TWO, [("gaps-1", "m, women get less"), ("gaps-2", "n, women get less")])],
)
def test_figures_of_several_models_are_numbered_and_named(part: pl.DataFrame, expected: list[tuple[str, str]]):
    assert [(figure.name, figure.title) for figure in each_model(part, drawn)] == expected


def test_a_title_begins_with_a_capital_or_with_the_model():
    assert sentence("", "women get less") == "Women get less"
    assert sentence("clip, ", "women get less") == "clip, women get less"
    assert [whose(part.to_dicts(), "m") for part in (ONE, TWO)] == ["", "m, "]


def test_a_chart_says_in_words_what_it_shows():
    (figure,) = drawn(ONE)
    spec = figure.spec(ink="currentColor", width="container")
    assert spec["description"] == "women get less. How to read it."
    assert (spec["width"], spec["config"]["axis"]["labelColor"]) == ("container", "currentColor")
    assert "title" not in spec


def test_a_chart_for_a_file_has_its_title_inside_and_a_white_ground():
    (figure,) = drawn(ONE)
    paper = figure.paper()
    assert (paper["title"], paper["background"]) == ("women get less", "white")
    assert paper["config"]["axis"]["labelColor"] != "currentColor"
