"""GRAS's figures on a full run of 600 images and 500 questions."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from beholder._run import Run
from beholder.chapter.charts import Figure
from beholder.report.drawing import save_charts
from beholder.studies.gras import phrases
from beholder.studies.gras.chapter import gras_tables
from beholder.studies.gras.charts import gras_figures, sides

ATTRIBUTES = ("gender", "race", "age", "skin-tone")


@pytest.fixture(scope="module")
def drawn(gras_full: Run) -> list[Figure]:
    return list(gras_figures(gras_full.results))


@pytest.mark.slow
def test_every_attribute_has_its_figures(drawn: list[Figure]) -> None:
    kinds = ("valence", "deviations", "wordings")
    expected = ["gaps", *(f"{kind}-{attribute}" for attribute in ATTRIBUTES for kind in kinds)]
    expected.remove("deviations-gender")  # one of two columns would mirror the other
    assert [figure.name for figure in drawn] == [*expected, "skin-tone-curve", "intersections", "wording-ranges"]


def test_a_bar_points_to_the_higher_group(gras_full: Run, drawn: list[Figure]) -> None:
    """Bars to the left are gaps of the group that the heading names there; a hollow bar names no one as higher."""
    layers = drawn[0].spec(ink="black", width=300)["layer"]
    bars = [row for row in layers[0]["data"]["values"] if "concept" in row]
    texts = [row.get("text") for layer in layers for row in layer["data"]["values"]]
    assert {"← Female higher", "Male higher →", "← younger higher", "darker higher →"} <= set(texts)
    gaps = {row["concept"]: row for row in phrases.largest(gras_full.results, "gender", 100)}
    for bar in bars[:5]:  # by gender
        row = gaps[bar["concept"]]
        assert bar["value"] == pytest.approx(100 * row["value"] * (1 if row["group"] == "Male" else -1), abs=1e-3)
        assert bar["low"] <= bar["value"] <= bar["high"]
        assert bar["found"] == (row["verdict"] == "difference found")
        assert bar["who"] == (f"{row['group']} above {row['against']}" if bar["found"] else "none found")
    assert [bar["value"] for bar in bars[:5]] == sorted((bar["value"] for bar in bars[:5]), reverse=True)


@pytest.mark.slow
def test_fewer_than_twenty_traits_are_no_strip(gras_full: Run) -> None:
    few = sorted(set(gras_full.results["concept"].drop_nulls()))[:19]
    part = gras_full.results.filter(pl.col("concept").is_null() | pl.col("concept").is_in(few))
    assert "wording-ranges" not in {figure.name for figure in gras_figures(part)}


def test_heat_maps_say_nothing_of_their_cells_one_by_one(drawn: list[Figure]) -> None:
    """2,400 labels for a screen reader would be no help, and half of the page."""
    specs = [figure.spec(ink="black", width=300) for figure in drawn]
    assert max(len(json.dumps(spec)) for spec in specs) < 100_000


@pytest.mark.slow
def test_one_attribute_without_tones_still_draws(gras_run: Run, tmp_path: Path) -> None:
    gender = gras_run.results.filter((pl.col("subset") == "gender") | pl.col("subset").is_null())
    paths = save_charts(Run(gender, gras_run.record).report, tmp_path)
    assert [path.name for path in paths if path.suffix == ".svg"] == [
        *(f"gras-gras-{kind}.svg" for kind in ("gaps", "valence-gender", "wordings-gender")),
        "gras-gras-intersections.svg",
        "gras-gras-wording-ranges.svg",
    ]


@pytest.mark.slow
def test_several_models_get_their_own_figures(gras_run: Run) -> None:
    gender = gras_run.results.filter((pl.col("subset") == "gender") | pl.col("subset").is_null())
    both = pl.concat([gender, gender.with_columns(model=pl.lit("other"))])
    names = {figure.name: figure.title for figure in gras_figures(both)}
    assert names["gaps-2"] == "other, the widest gaps"


@pytest.mark.slow
def test_a_page_of_many_models_leaves_the_large_figures_out_and_says_so(gras_run: Run) -> None:
    gender = gras_run.results.filter((pl.col("subset") == "gender") | pl.col("subset").is_null())
    many = pl.concat([gender.with_columns(model=pl.lit(name)) for name in "abcd"])
    names = {figure.name.rpartition("-")[0] for figure in gras_figures(many)}
    assert names == {"gaps", "valence-gender", "intersections"}
    assert any("up to three models" in note for note in next(iter(gras_tables(many))).notes)


def test_the_sides_of_an_attribute_are_named_where_its_groups_have_an_order() -> None:
    ages = {"3-9": 3, "10-19": 10, "more than 70": 70}
    assert sides(list(ages), "age") == (ages, ("younger", "older"))
    assert sides(["man", "woman"], "gender")[1] == ("man", "woman")
    assert sides(["Black", "Indian", "White"], "race")[1] == ("", "")
