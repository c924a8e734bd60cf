"""Perception's figures: every figure of the study is drawn, and titles claim nothing of noise."""

from __future__ import annotations

import polars as pl
import pytest
import vl_convert
from studies.perception.worlds import OPTIONS, designed, matrix, measured, noise, photographs, rng

from beholder.chapter.figure import Figure
from beholder.studies.perception.charts import perception_figures
from beholder.studies.perception.study import perception_study


def test_every_figure_of_the_study_is_drawn(drawn: dict[str, Figure], results: pl.DataFrame):
    assert {"groups", "effects", "induced-variation", "variance", "separation", "confound-smiling"} <= set(drawn)
    assert {"smiling-warmth", "age-communion_neg", "density-neutral", "density-delta-cosine"} <= set(drawn)
    assert "neutral-r" in drawn
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


def test_titles_claim_nothing_of_noise(results: pl.DataFrame):
    titles = {figure.name: figure.title for figure in perception_figures(results)}
    assert titles["groups"] == "No difference between the groups is shown"
    images = designed(6, lighting=0, pose=0)
    titles = {figure.name: figure.title for figure in perception_figures(measured(matrix(images, noise(images))))}
    assert titles["induced-variation"] == "No attribute is shown to make wider differences than another"
    assert titles["effects"].startswith("0 of ")


def test_several_models_have_figures_of_their_own(results: pl.DataFrame):
    few = results.filter(pl.col("metric").is_in(["perception.delta_cosine", "perception.gap"]))
    other = few.with_columns(model=pl.lit("other"))
    figures = {figure.name: figure.title for figure in perception_figures(pl.concat([few, other]))}
    assert figures["groups-1"].startswith("a model, ")
    assert figures["groups-2"].startswith("other, ")


def test_ratings_have_figures_whose_numbers_are_rows():
    draw, images = rng(9), photographs()
    rated = pl.DataFrame(
        [
            {"kind": "image", "who": name, "trait": trait, "mean": draw.normal(), "n": 9.0}
            for trait in ("warmth", "honest")
            for name in images["image_id"]
        ]
    )
    results = measured(matrix(images), perception_study(ratings=rated), OPTIONS)
    figures = {figure.name: figure for figure in perception_figures(results)}
    for name, metric, count in (("ratings", "rating_r", 2), ("rating-departures", "rating_departure", 12)):
        spec = figures[name].spec(ink="#000", width=300)
        layers = [layer["data"]["values"] for layer in spec["layer"] if "dimension" in str(layer["data"])]
        rows = results.filter((pl.col("metric") == f"perception.{metric}") & pl.col("value").is_not_null())
        assert len(layers[0]) == rows.height == count
        assert sorted(row["value"] for row in layers[0]) == pytest.approx(sorted(rows["value"].to_list()), abs=1e-4)
        assert vl_convert.vegalite_to_svg(figures[name].paper()).startswith("<svg")
