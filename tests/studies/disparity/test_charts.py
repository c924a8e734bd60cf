"""Disparity's figures show what the rows say."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from beholder.chapter.charts import Figure
from beholder.studies.disparity import findings
from beholder.studies.disparity.charts import disparity_figures, stacked
from beholder.studies.disparity.findings import Pair


@pytest.fixture(scope="module")
def figures(full: pl.DataFrame) -> dict[str, Figure]:
    return {figure.name: figure for figure in disparity_figures(full)}


@pytest.mark.slow
def test_every_figure_is_drawn(figures: dict[str, Figure]):
    assert {"gaps", "spread", "reliability-0", "reliability-1", "agreement-1"} <= set(figures)
    assert figures["gaps"].title == "“man” less “woman”: the widest gaps"


def test_titles_are_the_headlines_of_the_findings(full: pl.DataFrame, figures: dict[str, Figure]):
    made = findings.disparity_findings(full)
    headlines = {finding.kind: finding.headline for finding in made}
    for name, kind in {"gaps": "gaps", "spread": "mean", "calibration-gaps": "calibration"}.items():
        assert figures[name].titled(made).title == headlines[kind]
    assert figures["agreement-1"].titled(made).title == headlines["agreement"]


def test_reliability_is_drawn_at_the_mean_confidence_of_each_bin(full: pl.DataFrame, figures: dict[str, Figure]):
    bins = full.filter(pl.col("metric") == "disparity.reliability", pl.col("concept").is_null())
    layers = figures["reliability-0"].chart.to_dict(validate=False)["layer"]
    drawn = [point["confidence"] for point in layers[1]["data"]["values"]]
    assert drawn == bins["expected"].to_list()


def test_the_colour_of_agreement_is_that_of_its_value(full: pl.DataFrame, figures: dict[str, Figure]):
    values = full.filter(pl.col("metric") == "disparity.agreement").select("concept", "value")
    names = {1.0: "green", 0.0: "yellow", -1.0: "red"}
    layers = figures["agreement-1"].chart.to_dict(validate=False)["layer"]
    drawn = {dot["concept"]: dot["colour"] for dot in layers[-1]["data"]["values"]}
    assert drawn == {concept: names[value] for concept, value in values.iter_rows()}


@pytest.mark.slow
def test_several_groups_and_models_have_figures_of_their_own(three_groups: pl.DataFrame):
    both = pl.concat([three_groups, three_groups.with_columns(model=pl.lit("other"))])
    names = [figure.name for figure in disparity_figures(both)]
    assert {"gaps-1-1", "gaps-3-2", "spread-2-1"} <= set(names)
    assert len(set(names)) == len(names)


@pytest.fixture(scope="module")
def three_models(full: pl.DataFrame) -> dict[str, Figure]:
    models = pl.concat([full.with_columns(model=pl.lit(name)) for name in ("CLIP", "Detic", "LSeg")])
    return {figure.name: figure for figure in disparity_figures(models)}


def values(figure: Figure, layer: int = 0) -> list[dict[str, Any]]:
    spec = figure.spec(ink="black", width=600)
    return (spec if "data" in spec else spec["layer"][layer])["data"]["values"]


@pytest.mark.slow
def test_three_models_are_in_one_chart(three_models: dict[str, Figure], full: pl.DataFrame):
    """As in the study's figures 1, 2 and 4: gaps, means, calibration and agreement."""
    names = {"models-means", "models-gaps", "models-calibration", "models-agreement-1"}
    assert names <= set(three_models)
    dots = values(three_models["models-gaps"])
    assert {dot["model"] for dot in dots} == {"CLIP", "Detic", "LSeg"}
    gaps = {row["concept"]: row for row in findings.gaps(full, Pair("man", "woman")).to_dicts()}
    assert {(dot["concept"], dot["value"], bool(dot["found"])) for dot in dots} == {
        (concept, round(100 * row["value"], 2), row["found"]) for concept, row in gaps.items()
    }
    assert {dot["concept"]: dot["words"] for dot in dots}["tie"] == "nearer to words for “man”"
    assert {dot["concept"]: dot["words"] for dot in dots}["handbag"] == "nearer to words for “woman”"
    means = {(row["model"], row["group"]) for row in values(three_models["models-means"], 1)}
    assert len(means) == 6
    bars = values(three_models["models-agreement-1"])
    assert sum(bar["value"] for bar in bars if bar["model"] == "CLIP") == 4
    assert max(bar["end"] for bar in bars) == 4


def test_calibration_by_concept_is_coloured_by_the_words(figures: dict[str, Figure], full: pl.DataFrame):
    bars = {bar["concept"]: bar for bar in values(figures["calibration-gaps"])}
    roots = [
        full.filter(pl.col("metric") == "disparity.miscalibration", group=group, concept="tie")["value"][0] ** 0.5
        for group in ("man", "woman")
    ]
    assert bars["tie"]["value"] == pytest.approx(100 * (roots[0] - roots[1]), abs=0.01)
    assert bars["tie"]["words"] == "nearer to words for “man”"
    assert bars["handbag"]["words"] == "nearer to words for “woman”"


def test_one_model_needs_no_chart_of_models(figures: dict[str, Figure]):
    assert not [name for name in figures if name.startswith("models-")]


def test_dots_that_would_overlap_are_stacked():
    rows = stacked([{"concept": "tie", "value": value} for value in (0.0, 0.0, 0.0, 100.0)])
    assert [row["level"] for row in rows] == [0.0, 0.125, 0.25, 0.0]


def test_raw_gaps_are_drawn_by_name_as_in_figure_1(full: pl.DataFrame, three_models: dict[str, Figure]):
    for topic, metric in {"gaps": "ap_gap", "calibration": "ece_gap"}.items():
        raw = full.filter(metric=f"disparity.{metric}").filter(pl.col("value").is_not_nan(), pl.col("value") != 0)
        expected = {row["concept"]: round(100 * row["value"], 2) for row in raw.drop_nulls("value").to_dicts()}
        for place, model in enumerate(("CLIP", "Detic", "LSeg"), 1):
            figure = three_models[f"printed-{topic}-{place}"]
            bars = values(figure)
            assert {bar["concept"]: bar["value"] for bar in bars} == expected
            assert [bar["value"] for bar in bars] == sorted(expected.values(), reverse=True)
            assert figure.title.startswith(model)
            assert all(bar["low"] is None for bar in bars)
