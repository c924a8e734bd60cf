"""GRAS on the golden scores: every mean, statistic and p-value of the authors' script, and the score."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder._measure import measure_scores
from beholder._options import AuditOptions
from beholder.datasets import load_dataset
from beholder.metrics.group_tests import friedman, repeated_measures_anova
from beholder.scores.imported import import_scores
from beholder.studies import STUDIES
from beholder.studies.gras.groups import read_answers

pytestmark = pytest.mark.real
FILES = {"gender": "gender", "race": "race", "age": "age", "skin_tone": "Skin_Tone"}
SCORES = ("p_yes_fairface.parquet", "p_yes_aiface.parquet")


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "golden" / "gras"


@pytest.fixture(scope="module")
def results(folder: Path, data: Path, tmp_path_factory) -> pl.DataFrame:
    out = tmp_path_factory.mktemp("gras")
    options = AuditOptions(out=out, store=out, data=data, permutations=10)
    run = measure_scores(STUDIES["gras"], [folder / name for name in SCORES], options, model="golden")
    assert run.record.left_out == ["gras: no score for 0 of 5010 images and 440 of 500 prompts"]
    return run.results


def expected(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"expected_{name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("attribute", FILES)
def test_means_statistics_and_p_values_are_the_authors(results: pl.DataFrame, folder: Path, attribute: str):
    mine = results.filter(subset=attribute)
    values = {
        (metric, group, concept, template): (value, p)
        for metric, group, concept, template, value, p in mine.select(
            "metric", "group", "concept", "template", "value", "p_value"
        ).iter_rows()
    }
    checked = 0
    for row in expected(folder, f"{FILES[attribute]}_bias_analysis"):
        for k in range(5):
            place, end = (row["trait"], f"T{k + 1}"), f"_template_{k}"
            statistic, p_value = values["gras.welch", None, *place]
            assert statistic == pytest.approx(float(row[f"statistic{end}"]), rel=1e-6)
            assert p_value == pytest.approx(float(row[f"p_value{end}"]), rel=1e-6)
            overall = values["gras.overall_mean", None, *place][0]
            assert overall == pytest.approx(float(row[f"overall_mean{end}"]), rel=1e-6)
            begin = f"{row['attribute']}_"
            for name in row:
                if name.startswith(begin) and name.endswith(f"_mean{end}"):
                    group = name.removeprefix(begin).removesuffix(f"_mean{end}")
                    assert values["gras.group_mean", group, *place][0] == pytest.approx(float(row[name]), rel=1e-6)
                    checked += 1
    assert checked == 12 * 5 * len(mine.filter(metric="gras.group_mean")["group"].unique())


def test_the_score_is_the_authors(results: pl.DataFrame, folder: Path):
    stated = json.loads((folder / "expected_score.json").read_text())
    (score,) = results.filter(metric="gras.bias_score")["value"]
    assert score == pytest.approx(stated["gras_bias_score_as_share"])
    shares = dict(results.filter(metric="gras.biased_traits").select("subset", "value").iter_rows())
    stated_shares = stated["share_of_traits_any_template_p05_per_attribute"]
    assert shares == pytest.approx({name: stated_shares[file] for name, file in FILES.items()})


def test_the_score_is_set_beside_what_it_says_without_bias(results: pl.DataFrame):
    (expected_score,) = results.filter(metric="gras.bias_score_expected").to_dicts()
    assert 5 < expected_score["value"] < 23
    assert expected_score["low"] < expected_score["value"] < expected_score["high"]


def test_wording_tests_are_those_of_the_golden_file(folder: Path, data: Path):
    tasks = STUDIES["gras"].asks.tasks(load_dataset("gras", data))
    (matrix,) = import_scores([folder / name for name in SCORES], tasks).matrices
    answers = read_answers({"gras": matrix})
    first = pl.read_parquet(folder / SCORES[0])["file"][:300].to_list()
    place = {image: row for row, image in enumerate(matrix.images["image_id"])}
    scores = answers.p_yes[[place[image] for image in first]]
    anova, chi = repeated_measures_anova(scores), friedman(scores)
    for row in expected(folder, "template_sensitivity_first300"):
        column = answers.traits.index(row["trait"])
        for name, found in (
            ("anova_f", anova.statistic),
            ("anova_p", anova.p_value),
            ("den_df", anova.df_within),
            ("friedman", chi.statistic),
            ("friedman_p", chi.p_value),
        ):
            assert found[column] == pytest.approx(float(row[name]), rel=1e-6)


def test_every_metric_has_a_meaning(results: pl.DataFrame):
    assert set(results["metric"]) <= {metric.name for metric in STUDIES["gras"].measures.metrics}
    assert not np.isnan(results["value"].drop_nulls().to_numpy()).any()
