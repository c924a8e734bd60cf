"""Disparity's figures show what the rows say."""

from __future__ import annotations

import polars as pl
import pytest

from beholder.chapter.figure import Figure
from beholder.studies.disparity.charts import disparity_figures, stacked


@pytest.fixture(scope="module")
def figures(full: pl.DataFrame) -> dict[str, Figure]:
    return {figure.name: figure for figure in disparity_figures(full)}


def test_every_figure_is_drawn(figures: dict[str, Figure]):
    assert {"gaps", "spread", "reliability-0", "reliability-1", "agreement-1"} <= set(figures)
    assert "“tie” +" in figures["gaps"].title
    assert "“handbag” −" in figures["gaps"].title
    assert figures["gaps"].title.startswith("“man” less “woman”")


def test_reliability_is_drawn_at_the_mean_confidence_of_each_bin(full: pl.DataFrame, figures: dict[str, Figure]):
    bins = full.filter(pl.col("metric") == "disparity.reliability", pl.col("concept").is_null())
    layers = figures["reliability-0"].chart.to_dict(validate=False)["layer"]
    drawn = [point["confidence"] for point in layers[1]["data"]["values"]]
    assert drawn == bins["expected"].to_list()


def test_the_colour_of_agreement_is_that_of_its_value(full: pl.DataFrame, figures: dict[str, Figure]):
    values = full.filter(pl.col("metric") == "disparity.agreement").select("concept", "value")
    names = {1.0: "green", 0.0: "yellow", -1.0: "red"}
    layers = figures["agreement-1"].chart.to_dict(validate=False)["layer"]
    drawn = {dot["concept"]: dot["colour"] for dot in layers[2]["data"]["values"]}
    assert drawn == {concept: names[value] for concept, value in values.iter_rows()}


def test_several_groups_and_models_have_figures_of_their_own(three_groups: pl.DataFrame):
    both = pl.concat([three_groups, three_groups.with_columns(model=pl.lit("other"))])
    names = [figure.name for figure in disparity_figures(both)]
    assert {"gaps-1-1", "gaps-3-2", "spread-2-1"} <= set(names)
    assert len(set(names)) == len(names)


def test_dots_that_would_overlap_are_stacked():
    rows = stacked([{"value": value} for value in (0.0, 0.0, 0.0, 100.0)], 10)
    assert [row["level"] for row in rows] == [0.0, 0.1, 0.2, 0.0]
