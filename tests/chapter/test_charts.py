"""Charts: the forms that rooms declare their figures with, and what a figure's title says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from beholder.chapter.charts import (
    EVERYONE,
    LANE,
    Axis,
    Figure,
    bars,
    curves,
    dots,
    each_model,
    forest,
    heatmap,
    order,
    scatter,
    sentence,
    series,
)
from beholder.chapter.finding import Finding
from beholder.core.results import Row, results_table

SHARE = Axis("share", percent=True)


def rows(*made: Row, model: str = "m") -> list[dict[str, Any]]:
    return results_table(made, study="s", model=model, dataset="d").to_dicts()


def share(value: float, group: str | None = None, concept: str = "kind", width: float = 0.1, **others: Any) -> Row:
    low, high = value - width / 2, value + width / 2
    return Row("s.share", value, 9, "probability", group=group, concept=concept, low=low, high=high, **others)


def scale_of(chart: Any, channel: str) -> dict[str, Any]:
    """The scale of the last layer with this channel."""
    layers = [layer["encoding"] for layer in chart.to_dict()["layer"]]
    return dict(next(each[channel]["scale"] for each in reversed(layers) if channel in each))


def values(chart: Any, layer: int) -> list[dict[str, Any]]:
    return list(chart.to_dict()["layer"][layer]["data"]["values"])


# Forest


def test_every_group_has_a_shape_of_its_own_and_women_and_men_keep_theirs():
    known = dots(rows(share(0.2, "woman"), share(0.4, "man")))
    assert scale_of(known, "shape") == {"domain": ["women", "men"], "range": ["circle", "square"]}
    others = dots(rows(share(0.2, "old"), share(0.4, "young")))
    assert scale_of(others, "shape")["range"] == ["circle", "square"]


def test_groups_whose_plural_is_another_group_keep_their_names():
    assert scale_of(dots(rows(share(0.2, "woman"), share(0.4, "women"))), "color")["domain"] == ["woman", "women"]


def test_concepts_are_ordered_by_their_largest_value():
    spec = dots(rows(share(0.2, concept="a"), share(0.6, concept="b"))).to_dict()
    assert spec["layer"][0]["encoding"]["y"]["sort"] == ["b", "a"]


def test_a_row_of_no_group_is_drawn_as_everyone():
    assert f"'group': '{EVERYONE}'" in str(dots(rows(share(0.1))).to_dict())


def test_published_models_have_a_lane_of_their_own():
    own = rows(share(0.5, subset="a"), share(0.6, subset="b"))
    alone, beside = forest(own, SHARE), forest(own, SHARE, published=[{"model": "p", "subset": "a", "value": 0.4}])
    assert [len(each.to_dict()["layer"]) for each in (alone, beside)] == [2, 3]
    assert alone.to_dict()["height"] == LANE * 2 * 1.8 < beside.to_dict()["height"]


def test_chance_and_landmarks_are_marked_only_where_they_are_known():
    made = rows(share(0.5, subset="a", chance=0.1), share(0.5, subset="b"))
    chart = forest(made, SHARE, landmark=1.0)
    assert values(chart, 2) == [{"subset": "a", "model": "m", "chance": 0.1}]
    assert values(chart, 3) == [{"landmark": 1.0}]


def test_names_come_once_in_their_order_and_absent_ones_not_at_all():
    assert order(rows(share(0.1, "b"), share(0.1), share(0.1, "a"), share(0.1, "b")), "group") == ["b", "a"]


# Other forms


def test_a_series_has_the_names_that_occur_in_the_order_of_the_colours():
    made = rows(share(0.1, "b"), share(0.2, "a"))
    colours = {"a": "red", "b": "blue", "c": "green"}
    assert series(made, "group", colours).colour.to_dict()["scale"] == {"domain": ["a", "b"], "range": ["red", "blue"]}
    assert series(made[:1], "group", alone=False).colour.to_dict()["legend"] is None


@pytest.mark.parametrize("upright", [False, True])
def test_bars_have_intervals_ticks_and_lanes(upright: bool):
    made = [{**row, "tick": 0.3} for row in rows(share(0.1, "a"), share(0.2, "b"))]
    marks = series(made, "group")
    chart = bars(made, SHARE, down="concept", lane="group", marks=marks, tick="tick", upright=upright).to_dict()
    along = "y" if upright else "x"
    assert [layer["encoding"][along]["field"] for layer in chart["layer"]] == ["value", "low", "tick"]
    assert "opacity" not in chart["layer"][0]["encoding"]


def test_what_was_not_found_is_pale():
    made = [{**row, "found": False} for row in rows(share(0.1, "a"))]
    bar = bars(made, SHARE, down="concept", marks=series(made, "group")).to_dict()["layer"][0]
    cell = heatmap(made, across="group", down="concept").to_dict()["layer"][0]
    assert bar["encoding"]["opacity"]["condition"]["test"] == cell["encoding"]["opacity"]["condition"]["test"]


def test_a_heat_map_is_even_around_0_and_has_bold_headings():
    cells = [{"trait": "kind", "group": "a", "value": -4.97, "found": 1}]
    chart = heatmap(cells, across="group", down="trait", lines=["positive", "kind"], headings=["positive"], text=".1f")
    spec = chart.to_dict()
    colour = spec["layer"][0]["encoding"]["color"]
    assert (colour["scale"]["domain"][0], colour["scale"]["domain"][-1]) == (-4.97, 4.97)
    assert colour["legend"]["values"] == [-2.0, 0, 2.0]
    assert "positive" in str(spec["layer"][0]["encoding"]["y"]["axis"]["labelFontWeight"])
    assert len(spec["layer"]) == 2


def test_curves_and_scatters_draw_every_row():
    made = rows(share(0.1, "a"), share(0.2, "b"))
    marks = series(made, "group", {"a": "red", "b": "blue"}, {"a": "circle", "b": "cross"})
    drawn = curves(made, SHARE.x("n"), SHARE, marks=marks, band=True, diagonal=True).to_dict()
    assert len(drawn["layer"]) == 4
    drawn = scatter(made, SHARE.x("n"), SHARE.y(), marks=marks, tips=["group:N"]).to_dict()
    assert drawn["layer"][0]["encoding"]["shape"]["scale"]["range"] == ["circle", "cross"]


# Figures

ONE = results_table([share(0.2, "woman")], study="s", model="m", dataset="d")
TWO = pl.concat([ONE, ONE.with_columns(model=pl.lit("n"))])


def drawn(part: pl.DataFrame) -> Iterator[Figure]:
    assert part["model"].n_unique() == 1
    yield Figure("gaps", "women get less", "How to read it.", dots(part.to_dicts()), "gaps", answers=("gap",))


@pytest.mark.parametrize(
    ("part", "expected"),
    [(ONE, [("gaps", "Women get less")]), (TWO, [("gaps-1", "m, women get less"), ("gaps-2", "n, women get less")])],
)
def test_figures_of_several_models_are_numbered_and_named(part: pl.DataFrame, expected: list[tuple[str, str]]):
    assert [(figure.name, figure.title) for figure in each_model(part, drawn)] == expected


def test_a_figure_has_the_headline_of_its_model_s_finding():
    findings = [Finding("s", "d", model, "gap", f"gap of {model}", "", "", 0.0) for model in "nm"]
    assert [figure.titled(findings).title for figure in each_model(TWO, drawn)] == ["m, gap of m", "n, gap of n"]
    assert [figure.titled(findings[:1]).title for figure in each_model(ONE, drawn)] == ["Gap of n"]
    assert [figure.titled(findings).title for figure in drawn(ONE)] == ["women get less"], "one headline is not for two"
    assert next(drawn(ONE)).titled([]).title == "women get less"
    named = next(drawn(ONE))._replace(answers=("gap", "race"))
    rows = [({"subset": name},) for name in ("gender", "race")]
    found = [findings[0]._replace(headline=row["subset"], rows=(row,)) for (row,) in rows]
    assert named.titled(found).title == "Race"


def test_a_title_begins_with_a_capital_or_with_the_model():
    assert sentence("", "women get less") == "Women get less"
    assert sentence("clip, ", "women get less") == "clip, women get less"


def test_a_chart_says_in_words_what_it_shows():
    (figure,) = drawn(ONE)
    spec = figure.spec(ink="currentColor", width="container")
    assert spec["description"] == "women get less. How to read it."
    assert (spec["width"], spec["config"]["axis"]["labelColor"]) == ("container", "currentColor")
    assert "title" not in spec


def test_a_chart_for_a_file_has_its_title_inside_and_a_white_ground():
    (figure,) = drawn(ONE)
    paper = figure.paper()
    assert (paper["title"], paper["background"]) == (["women get less"], "white")
    assert paper["config"]["axis"]["labelColor"] != "currentColor"
