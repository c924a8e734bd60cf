"""Names from strangers come out whole: groups, dimensions and words that look like our own separators."""

from __future__ import annotations

import json
from typing import NamedTuple

import polars as pl
import pytest
from studies.perception.worlds import OPTIONS, designed, matrix, measured, noise, photographs

from beholder._run import Run
from beholder.report.page import render
from beholder.studies.perception.chapter import perception_tables
from beholder.studies.perception.charts import perception_figures
from beholder.studies.perception.findings import perception_findings
from beholder.studies.perception.prompts import Dimension, perception_prompts
from beholder.studies.perception.study import perception_study

LONG = "long " + 59 * "name " + "end"
NAMES = (
    "60 and over",
    "2 or more races",
    "a over b less c",
    "d × e",
    "f|g·h",
    "two\nlines",
    "👩🏽‍🚀 עברית",
    'it\'s "q"',
    LONG,
)
ODD = (
    Dimension("up over down", "up over down", ("2 × 3", "kind|T1"), "positive", "less is\nmore"),
    Dimension("less is\nmore", "less is\nmore", ("“odd” · word", "with over"), "negative", "up over down"),
)
PAIRED = (
    "gap",
    "causal_effect",
    "absolute_difference",
    "interaction",
    "sc_weat",
    "separation",
    "neutral_test",
    "induced_variation_test",
    "opposites_r",
)


class Told(NamedTuple):
    """What findings, tables and figures say, and the names of the figures."""

    findings: str
    cells: list[str]
    figures: str
    names: list[str]


def told(results: pl.DataFrame) -> Told:
    findings = "\n".join(f"{each.headline} {each.sentence}" for each in perception_findings(results))
    cells = [cell.text for table in perception_tables(results) for row in table.rows for cell in row]
    figures = list(perception_figures(results))
    drawn = [[figure.title, figure.caption, figure.spec(ink="#000", width=300)] for figure in figures]
    return Told(findings, cells, json.dumps(drawn, ensure_ascii=False), [figure.name for figure in figures])


def escaped(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)[1:-1]


@pytest.fixture(scope="module")
def strangers() -> pl.DataFrame:
    """Photographs of people with odd labels, judged on odd dimensions; each race has a score of its own."""
    prompts = perception_prompts(ODD).table
    images = photographs(40 * len(NAMES), races=NAMES, genders=("man over woman", "3 less 2"))
    cells = noise(images, prompts=prompts)
    cells += images["race"].replace_strict(NAMES, [0.01 * k for k in range(len(NAMES))]).to_numpy()[:, None]
    cells[:, (prompts["concept"] == "").to_numpy()] = 0.2
    return measured(matrix(images, cells, prompts=prompts), perception_study(ODD), OPTIONS)


@pytest.fixture(scope="module")
def design_of_strangers() -> pl.DataFrame:
    images = designed(5, lighting=0, pose=0)
    genders = {"woman": "a over b less c", "man": "2 or more × genders"}
    images = images.with_columns(pl.col("gender").replace_strict(genders))
    prompts = perception_prompts(ODD).table
    return measured(matrix(images, prompts=prompts), perception_study(ODD), OPTIONS)


@pytest.fixture(scope="module")
def told_strangers(strangers: pl.DataFrame) -> Told:
    return told(strangers)


@pytest.fixture(scope="module")
def told_design(design_of_strangers: pl.DataFrame) -> Told:
    return told(design_of_strangers)


@pytest.mark.slow
def test_groups_are_columns_and_never_sentences(strangers: pl.DataFrame, design_of_strangers: pl.DataFrame):
    crossed = {f"{race} {gender}" for race in NAMES for gender in ("man over woman", "3 less 2")}
    known = {*NAMES, "man over woman", "3 less 2", *crossed, *(d.name for d in ODD)}
    pairs = strangers.drop_nulls("against")
    assert set(pairs["group"]) | set(pairs["against"]) <= known
    both = pl.concat([strangers, design_of_strangers]).filter(
        pl.col("metric").is_in([f"perception.{name}" for name in PAIRED]), pl.col("concept").ne_missing("mean")
    )
    assert both["against"].null_count() == 0
    assert set(both["metric"]) == {f"perception.{name}" for name in PAIRED}


@pytest.mark.slow
def test_every_name_is_whole_in_findings_tables_and_figures(told_strangers: Told):
    for name in (*NAMES, *(d.name for d in ODD)):
        assert escaped(name) in told_strangers.figures, name
    assert f"{NAMES[-1]} above {NAMES[0]}" in told_strangers.findings  # the farthest apart
    assert set(NAMES) <= set(told_strangers.cells)


@pytest.mark.slow
def test_a_race_that_begins_with_a_number_is_not_a_skin_tone(told_strangers: Told, told_design: Told):
    assert "MST" not in f"{told_strangers}"
    assert "MST 2 or more" not in f"{told_design}"
    assert "MST 2 against MST 9" in told_design.cells
    assert "MST 9 a over b less c" in told_design.figures


def test_an_interaction_of_odd_groups_keeps_both_names(design_of_strangers: pl.DataFrame):
    rows = design_of_strangers.filter(pl.col("metric") == "perception.interaction", subset="smiling × gender")
    assert set(rows.select("group", "against").iter_rows()) == {("2 or more × genders", "a over b less c")}


@pytest.mark.slow
def test_files_of_figures_have_plain_names(told_strangers: Told, told_design: Told):
    names = told_strangers.names + told_design.names
    assert all(name.replace("-", "").replace("_", "").isalnum() and len(name) < 40 for name in names)


@pytest.mark.slow
def test_markup_in_a_name_stays_text_on_the_page():
    odd = "<script>alert('x')</script>"
    run = Run()
    run.add(measured(matrix(photographs(races=("White", "Black", odd))), dataset="folder:x"))
    page = render(run.report)
    assert odd not in page
    assert "&lt;script&gt;alert" in page
