"""Names of any kind come out whole: in rows, findings, tables and charts."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from beholder._run import Run
from beholder.core.results import results_table
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.public_figures.chapter import public_figure_tables
from beholder.studies.public_figures.charts import public_figure_charts
from beholder.studies.public_figures.study import public_figure_measures
from beholder.studies.study import MeasureOptions

HOSTILE = [
    "60 and over under 60",
    "more less than over",
    "2 or more | races",
    "a · b / association",
    "line\nbreak\tand tab",
    "🦉 {0} %s [x](y) <b>",
    "שלום عليكم",
    "boss" + "s" * 296,
    "woman",
]


def results(make: SimpleNamespace, name: str) -> pl.DataFrame:
    """Rows with `name` wherever data can put a name: model, branch, pool and occupation."""
    place = {"subset": name, "concept": "specialty"}
    rows = [
        make.share("apa.association", 0.2, chance=1 / 7, **place),
        make.share("apa.association_top1", 0.2, chance=1 / 7, **place),
        make.share("apa.identity_given_image", 0.3, subset=name, chance=1 / 100),
        *(
            make.share("apa.occupation_probability", value, subset=name, group=group, concept=name)
            for group, value in (("woman", 0.2), ("man", 0.4))
        ),
        make.ratio(name, 0.5, 0.4, 0.6),
    ]
    return results_table(rows, study="apa", model=name, dataset="apa")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_comes_out_whole(make: SimpleNamespace, name: str):
    table = pl.concat([results(make, name), results(make, "other")])
    findings = [finding for finding in Run(table).findings if finding.rows[0]["subset"] == name]
    assert len(findings) == 4
    for finding in findings:
        assert finding.rows[0]["model"] == name or len(name) > 40  # the page shortens long names of models
        if not finding.headline.startswith("Belief on the right answer"):
            assert name in finding.headline + finding.sentence
    bias = next(finding for finding in findings if finding.kind == "bias")
    assert f"“{name}”" in bias.headline
    assert bias.headline.endswith("20 % against 40 %")
    for made in public_figure_tables(table):
        texts = [cell.text for row in made.rows for cell in row]
        assert name in texts or made.title == "Occupations offered for other"
        assert {len(row) for row in made.rows} == {len(made.header)}
    for figure in public_figure_charts(table):
        if not figure.title.startswith("other, "):
            assert json.dumps(name)[1:-1] in json.dumps(figure.spec(ink="black", width=300))
        assert name not in figure.name


@pytest.mark.parametrize("name", HOSTILE)
def test_rows_have_the_names_of_the_data(name: str):
    people = pl.DataFrame(
        {"branch": [name] * 4, "name": [f"{name}{i}" for i in range(4)], "gender": ["woman", "man"] * 2}
    )
    prompts = prompt_set(
        "p",
        [
            {"text": text, "level": "occupation", "concept": text, "correct_for": rule}
            for text, rule in ((name, "*"), ("b", ""))
        ],
    )
    cells = np.random.default_rng(1).normal(size=(4, 2, 1))
    matrix = ScoreMatrix(name, people, prompts.table, ("score",), cells, kind="association", part=name)
    measures = public_figure_measures("t", {name: (name,)})
    rows = [row for measure in measures for row in measure({name: matrix}, MeasureOptions(draws=50))]
    assert {row.subset for row in rows} == {name}
    assert {row.concept for row in rows if row.metric == "t.occupation_probability"} == {name, "b"}
