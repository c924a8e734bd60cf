"""From the authors' own result tables our rules give the published scores and the published valence table."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder.metrics.group_tests import GroupTest, Moments
from beholder.studies.gras.groups import Answers, Compared
from beholder.studies.gras.measures import valence_rows
from beholder.studies.gras.prompts import read_traits
from beholder.studies.gras.result_files import gras_results, read_result_files

pytestmark = pytest.mark.real
ATTRIBUTES = ("gender", "race", "age", "Skin Tone")


@pytest.fixture(scope="module")
def folder(data: Path) -> Path:
    return data / "gras" / "evaluation_results"


def test_the_packaged_result_table_is_the_authors_own(folder: Path):
    assert read_result_files(folder).equals(gras_results())


def published(folder: Path, model: str, attribute: str) -> tuple[Compared, list[str]]:
    """One of the authors' tables as the comparison it came from."""
    with (folder / f"{model}_{attribute}_bias_analysis.csv").open() as file:
        rows = list(csv.DictReader(file))
    begin, end = f"{attribute}_", "_mean_template_0"
    groups = [
        name.removeprefix(begin).removesuffix(end) for name in rows[0] if name.startswith(begin) and name.endswith(end)
    ]

    def column(name: str) -> np.ndarray:
        return np.array([[float(row[f"{name}_template_{k}"]) for k in range(5)] for row in rows]).ravel()

    means = np.stack([column(f"{attribute}_{group}_mean") for group in groups])
    # The published groups are of equal size, so that their mean is the overall mean.
    moments = Moments(groups, np.ones_like(means), means, np.zeros_like(means))
    p_value = column("p_value")
    test = GroupTest(column("statistic"), p_value, p_value, p_value)
    return Compared(attribute, moments, test, (len(rows), 5)), [row["trait"] for row in rows]


def scores(shared: Path) -> list[dict[str, str]]:
    with (shared / "reference" / "gras_scores.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_published_scores_come_out_exactly(folder: Path, shared: Path):
    rows = scores(shared)
    assert len(rows) == 5
    for row in rows:
        shares = [100 * published(folder, row["model"], attribute)[0].biased.mean() for attribute in ATTRIBUTES]
        assert np.mean(shares) == pytest.approx(float(row["gras_bias_score"]), abs=1e-9)


def valence(folder: Path, model: str, attribute: str) -> dict[tuple[str, str], float]:
    compared, traits = published(folder, model, attribute)
    of = dict(read_traits().select("trait", "valence").iter_rows())
    answers = Answers(
        pl.DataFrame(), traits, [of[trait] for trait in traits], [f"T{k}" for k in range(1, 6)], np.empty((0, 0, 0))
    )
    return {(row.group, row.concept): row.value for row in valence_rows(answers, compared)}


def test_the_one_cell_of_the_valence_table_that_deviates_is_theirs(folder: Path):
    found = valence(folder, "paligemma2-3b-mix-224", "age")
    assert found["30-39", "negative"] == pytest.approx(14)  # printed as 22


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_valence_shares_follow_the_authors_own_differences(folder: Path, attribute: str):
    """Against their column `diff_from_overall`, counted in the obvious way."""
    of = dict(read_traits().select("trait", "valence").iter_rows())
    with (folder / f"llava-1.5-7b-hf_{attribute}_bias_analysis.csv").open() as file:
        rows = list(csv.DictReader(file))
    for (group, kind), share in valence(folder, "llava-1.5-7b-hf", attribute).items():
        mine = [row for row in rows if of[row["trait"]] == kind]
        above = [
            all(float(row[f"{attribute}_{group}_diff_from_overall_template_{k}"]) > 0 for k in range(5)) for row in mine
        ]
        assert share == pytest.approx(100 * np.mean(above), abs=1e-9)
