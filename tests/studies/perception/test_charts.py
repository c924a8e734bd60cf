"""Perception's figures: every figure of the study is drawn, and titles claim nothing of noise."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
import vl_convert
from studies.perception.worlds import OPTIONS, designed, matrix, measured, noise, photographs, rng

from beholder.chapter.charts import Figure
from beholder.studies.perception.charts import Panels, perception_figures
from beholder.studies.perception.study import perception_study


@pytest.mark.slow
def test_every_figure_of_the_study_is_drawn(drawn: dict[str, Figure], results: pl.DataFrame):
    assert {"groups", "effects", "induced-variation", "variance", "separation", "confounds"} <= set(drawn)
    assert {"curves-smiling", "curves-age", "densities", "neutral-r"} <= set(drawn)
    assert len(drawn) <= 12
    assert not {figure.name for figure in perception_figures(results)} & {"effects", "induced-variation"}


@pytest.mark.slow
def test_every_figure_can_be_drawn_to_the_end(drawn: dict[str, Figure]):
    for figure in drawn.values():
        svg = vl_convert.vegalite_to_svg(figure.paper(), allowed_base_urls=[])
        assert svg.count("<path") > 2, figure.name


def test_boxes_are_ordered_by_their_median_and_coloured_by_protection(drawn: dict[str, Figure]):
    rows = drawn["induced-variation"].chart.to_dict()["data"]["values"]
    assert [row["value"] for row in rows] == sorted((row["value"] for row in rows), reverse=True)
    assert {row["attribute"]: row["kind"] for row in rows}["age"] == "protected"


def layer_of(figure: Figure, field: str) -> list[dict[str, Any]]:
    """The rows of the last layer that has a field."""
    layers = figure.spec(ink="#000", width=300)["layer"]
    every = [list(layer["data"]["values"]) for layer in layers]
    return next(rows for rows in reversed(every) if rows and field in rows[0])


def test_all_curves_are_panels_of_one_view_on_one_scale(drawn: dict[str, Figure], matched: pl.DataFrame):
    """A step of Δ is as high in every panel, and a step of the attribute as wide."""
    rows = layer_of(drawn["curves-smiling"], "level")
    measured_points = matched.filter(pl.col("group") != "everyone", metric="perception.trajectory", subset="smiling")
    assert len(rows) == measured_points.height
    assert len({row["panel"] for row in rows}) == 8
    for panel in {row["panel"] for row in rows}:
        inside = [row for row in rows if row["panel"] == panel]
        x, y = (np.array([row[name] for row in inside]) for name in ("x", "y_value"))
        level, value = (np.array([row[name] for row in inside]) for name in ("level", "value"))
        low, high = min(row["value"] for row in rows), max(row["value"] for row in rows)
        assert np.ptp(np.floor(x)) == np.ptp(np.floor(y)) == 0  # a cell of its own
        assert np.allclose(x - x[0], (level - level[0]) * 0.88 / 4, atol=2e-4)
        slope = np.ptp(y) / np.ptp(value)
        assert 0.4 / (high - low) < slope <= 0.68 / (high - low) + 1e-3


@pytest.mark.slow
def test_two_models_share_one_chart_of_curves_on_one_scale(matched: pl.DataFrame):
    """Side by side, dimension by dimension; a model of another unit has a chart of its own."""
    smiling = matched.filter(pl.col("metric").str.contains("trajectory|delta_cosine"))
    twice = smiling.with_columns(model=pl.lit("other"), value=3 * pl.col("value"))
    (figure,) = (f for f in perception_figures(pl.concat([smiling, twice])) if f.name == "curves-smiling")
    rows = layer_of(figure, "level")
    names = list(dict.fromkeys(row["panel"] for row in rows))
    assert len(names) == 16
    assert names[1] == names[0].replace(str(smiling["model"][0]), "other")
    steps = [(row["y_value"] % 1, row["value"]) for row in rows]
    (low, least), (high, most) = min(steps, key=lambda each: each[1]), max(steps, key=lambda each: each[1])
    slope = (high - low) / (most - least)
    assert all(place == pytest.approx(low + slope * (value - least), abs=1e-3) for place, value in steps)
    apart = pl.concat([smiling, twice.with_columns(unit=pl.lit("P(Yes)"))])
    assert {"curves-smiling-1", "curves-smiling-2"} <= {f.name for f in perception_figures(apart)}


def test_ticks_of_panels_are_labelled_with_their_numbers():
    panels = Panels(["a", "b", "c"], dict.fromkeys("abc", (0.0, 4.0)), (-1.2, 3.1), columns=2)
    axis = panels.y_axis("y", "unit").to_dict()["axis"]
    label = re.fullmatch(r"format\((round\(.+), '~g'\)", axis["labelExpr"])
    assert label
    for place, tick in zip(axis["values"], [-1, 0, 1, 2, 3] * 2, strict=True):
        expression = label[1].replace("datum.value", str(place))
        assert eval(expression, {"floor": math.floor, "round": round}) == tick


def test_dimensions_with_the_widest_gap_come_first_and_are_labelled(drawn: dict[str, Figure]):
    spec = drawn["groups"].spec(ink="#000", width=300)
    rows = layer_of(drawn["groups"], "low")
    dots = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "point")["data"]["values"]
    names = list(dict.fromkeys(row["dimension"] for row in dots))
    widths = [np.ptp([row["value"] for row in dots if row["dimension"] == name]) for name in names]
    assert widths == sorted(widths, reverse=True)
    labels = [layer for layer in spec["layer"] if layer["mark"]["type"] == "text"]
    labelled = [row["group"] for layer in labels for row in layer["data"]["values"]]
    assert sorted(labelled) == sorted({row["group"] for row in dots})
    assert {row["dimension"] for row in rows} == {names[0]}


def test_the_longest_dimension_has_room_on_the_axis(drawn: dict[str, Figure]):
    spec = drawn["groups"].spec(ink="#000", width=300)
    axis = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "point")["encoding"]["y"]["axis"]
    assert axis["labelLimit"] >= axis["minExtent"] >= 6.5 * len("Belief, conservative")


@pytest.mark.slow
def test_titles_claim_nothing_of_noise(results: pl.DataFrame):
    titles = {figure.name: figure.title for figure in perception_figures(results)}
    assert titles["groups"] == "No difference between the groups is found"
    images = designed(6, lighting=0, pose=0)
    titles = {figure.name: figure.title for figure in perception_figures(measured(matrix(images, noise(images))))}
    assert titles["induced-variation"].startswith("The median difference is widest for ")
    assert titles["effects"].startswith("0 of ")


def test_several_models_have_figures_of_their_own(results: pl.DataFrame):
    few = results.filter(pl.col("metric").is_in(["perception.delta_cosine", "perception.gap"]))
    other = few.with_columns(model=pl.lit("other"))
    figures = {figure.name: figure.title for figure in perception_figures(pl.concat([few, other]))}
    assert figures["groups-1"].startswith("a model, ")
    assert figures["groups-2"].startswith("other, ")


@pytest.mark.slow
def test_ratings_have_figures_whose_numbers_are_rows():
    draw, images = rng(9), photographs()
    rated = pl.DataFrame(
        [
            {"who": name, "trait": trait, "mean": draw.normal(), "n": 9.0}
            for trait in ("warmth", "honest")
            for name in images["image_id"]
        ]
    )
    results = measured(matrix(images), perception_study(ratings=rated), OPTIONS)
    figures = {figure.name: figure for figure in perception_figures(results)}
    mirrors = [figure for name, figure in figures.items() if name.startswith("mirror-")]
    assert mirrors
    for figure in mirrors:
        values = figure.spec(ink="#000", width=300)["layer"][0]["data"]["values"]
        assert {row["model"] for row in values} == {"people", "model"}
        assert len(values) == 2 * 2
        assert vl_convert.vegalite_to_svg(figure.paper()).startswith("<svg")
