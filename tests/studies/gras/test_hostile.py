"""Names of traits, groups and wordings come out whole, whatever they contain."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from beholder._run import Run
from beholder.chapter.chapter import Table
from beholder.chapter.charts import Figure
from beholder.core.record import Record
from beholder.core.results import results_table
from beholder.report.page import render
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS
from beholder.studies.study import MeasureOptions

LONG = "x" * 300
AGES = ("60 and over", "under 60")
RACES = ("2 or more races", "A less B", "a | b · c", "🙂 \u05d0\u05d1", f"{LONG} over {LONG}")
TRAITS = ("kind over cruel", "3 | cold · less", "two\nlines", "🙂", LONG)
TEMPLATES = {"T|1 over": "Is the person {}?", "2 · less": "Would you say {}?", "🙂\n": "Are they {}?"}


@pytest.fixture(scope="module")
def run() -> Run:
    """Every trait differs by age and by race, so that all names are shown."""
    n, rng = 300, np.random.default_rng(3)
    valences = ["positive", "negative"] * 2 + ["positive"]
    prompts = gras_prompts(pl.DataFrame({"trait": TRAITS, "valence": valences}), TEMPLATES).table
    images = pl.DataFrame(
        {
            "image_id": [str(i) for i in range(n)],
            "age": [AGES[i % 2] for i in range(n)],
            "race": [RACES[i % 5] for i in range(n)],
        }
    )
    values = rng.normal(0.4, 0.02, (n, prompts.height))
    values[::2] += 0.2
    values += 0.02 * (np.arange(n) % 5)[:, None]
    matrix = ScoreMatrix("gras", images, prompts, ("score",), values[:, :, None])
    rows = GRAS.measures.functions[0]({"gras": matrix}, MeasureOptions(permutations=5, shuffles=299, delta=0.01))
    results = results_table(rows, study="gras", model="m | over", dataset="own")
    return Run(results, Record(beholder="0.1", created="2026-08-01T12:00:00+00:00", command=["beholder"]))


@pytest.fixture(scope="module")
def tables(run: Run) -> list[Table]:
    return run.report.sections[0].tables


@pytest.fixture(scope="module")
def figures(run: Run) -> list[Figure]:
    return run.report.sections[0].figures


def test_rows_hold_names_and_nothing_else(run: Run) -> None:
    gaps = run.results.filter(metric="gras.largest_gap")
    assert set(gaps["concept"]) == set(TRAITS)
    assert set(gaps.filter(subset="age").select("group", "against").iter_rows()) == {AGES}
    assert set(gaps.filter(subset="race").select("group", "against").iter_rows()) == {(RACES[-1], RACES[0])}
    assert set(run.results["template"].drop_nulls()) == set(TEMPLATES)


def test_a_finding_names_the_pair_and_the_trait_as_the_data_does(run: Run) -> None:
    by_age, by_race = (
        next(finding for finding in run.findings if finding.kind == "gap" and finding.rows[0]["subset"] == name)
        for name in ("age", "race")
    )
    assert "labelled 60 and over get" in by_age.sentence
    assert "those labelled under 60 within race (" in by_age.sentence
    assert f"labelled {RACES[-1]} get" in by_race.sentence
    assert "those labelled 2 or more races within age (" in by_race.sentence
    assert by_age.as_dict()["rows"][0]["against"] == "under 60"
    assert any(f"“{trait}”" in by_age.headline for trait in TRAITS)


def test_a_table_names_them_too(tables: list[Table]) -> None:
    texts = {table.title: [cell.text for row in table.rows for cell in row] for table in tables}
    gaps = texts["The five largest gaps of each attribute"]
    assert {*TRAITS, *AGES, RACES[0], RACES[-1]} <= set(gaps)
    assert {*AGES, *RACES} <= set(texts["Traits above the mean"])
    assert set(TEMPLATES) <= set(texts["Wording by wording"])
    assert f"{RACES[-1]} × 60 and over" in texts["Most and least favoured intersections"]
    assert not any("MST" in text for column in texts.values() for text in column)


def test_a_chart_names_them_too(figures: list[Figure]) -> None:
    values = {figure.name: _texts(figure.spec(ink="black", width=300)) for figure in figures}
    assert {*TRAITS, "60 and over higher than under 60"} <= values["gaps"]
    assert {*TRAITS, *RACES} <= values["deviations-race"]
    assert {*AGES} <= values["valence-age"]
    assert {*TRAITS, *TEMPLATES} <= values["wordings-race"]


def _texts(value: object) -> set[str]:
    """Every text in a chart's specification."""
    if isinstance(value, str):
        return {value}
    each = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text for one in each for text in _texts(one)}


def test_the_findings_file_and_the_page_hold_them_whole(run: Run, undrawn: list[object]) -> None:
    entries = json.dumps([finding.as_dict() for finding in run.findings], ensure_ascii=False)
    page = render(run.report)
    for name in ("60 and over", "under 60", "2 or more races", RACES[-1]):
        assert name in entries
        assert name in page
