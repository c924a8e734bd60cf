"""Prompts, levels, groups and attributes of any name come out whole."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from beholder._run import Run
from beholder.chapter.charts import dots
from beholder.core.results import results_table
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.custom.chapter import custom_figures, custom_tables
from beholder.studies.custom.study import custom_study
from beholder.studies.study import MeasureOptions

HOSTILE = [
    "60 and over under 60",
    "among the 3 prompts of level 'x'",
    "2 or more | races",
    "a · b / c; δ = 1e6",
    "line\nbreak\tand tab",
    "🦉 {0} %s [x](y) <b>",
    "שלום عليكم",
    "s" * 300,
]


def measured(name: str) -> pl.DataFrame:
    """Twelve pictures, two groups that differ in the first prompt of either of two levels."""
    groups = [name, f"{name}!"] * 10
    images = pl.DataFrame({"image_id": [str(i) for i in range(20)], "uri": [""] * 20, name: groups})
    rows = [{"text": f"{level}{n}", "level": level, "concept": f"{name}{n}"} for level in (name, "b") for n in range(2)]
    prompts = prompt_set("mine", rows)
    cells = np.random.default_rng(2).normal(0, 0.1, (20, 4, 1))
    cells[::2, ::2] += 2.0
    matrix = ScoreMatrix("custom", images, prompts.table, ("score",), cells)
    study = custom_study(prompts, by=(name,))
    return results_table(
        study.measures.functions[0]({"custom": matrix}, MeasureOptions(draws=100)),
        study="custom",
        model="m",
        dataset="d",
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_comes_out_whole(name: str):
    results = measured(name)
    assert results["template"].unique(maintain_order=True).to_list() == [name, "b"]
    findings = Run(results).findings
    assert len(findings) == 4
    assert {finding.headline for finding in findings} == {f"Belief in “{name}{n}” differs by {name}" for n in range(2)}
    assert sum(f"of level “{name}”" in finding.sentence for finding in findings) == 2
    groups = {finding.rows[0]["group"] for finding in findings} | {finding.rows[0]["against"] for finding in findings}
    assert groups == {name, f"{name}!"}
    assert all(f"for {group}" in finding.sentence for finding in findings for group in groups)
    gaps, _, first, _ = custom_tables(results)
    assert {cell.text for row in gaps.rows for cell in row[2:4]} == groups
    assert first.title == f"Prompts of level {name} by {name}"
    assert first.header == ["Prompt", "everyone (n = 20)", f"{name} (n = 10)", f"{name}! (n = 10)"]
    assert [row[0].text for row in first.rows] == [f"{name}0", f"{name}1"]
    for figure in custom_figures(results):
        spec = json.dumps(figure.spec(ink="black", width=300))
        assert all(json.dumps(text)[1:-1] in spec for text in (f"{name}0", f"{name}!"))
        assert figure.title.endswith(f" by {name}")


def test_groups_called_woman_and_women_stay_apart(make: SimpleNamespace):
    rows = [
        make.share("custom.probability", 0.4, concept="calm", subset="who", group=group) for group in ("woman", "women")
    ]
    spec = dots(results_table(rows, study="custom", model="m", dataset="d").to_dicts()).to_dict()
    assert {row["group"] for row in spec["data"]["values"]} == {"woman", "women"}
