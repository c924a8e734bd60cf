"""From the authors' own result tables our rules give the published scores and the published valence table."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder.metrics.group_tests import GroupTest, Moments
from beholder.studies.gras.groups import Compared, above_mean
from beholder.studies.gras.prompts import VALENCES, read_traits
from beholder.studies.gras.study import gras_results

pytestmark = pytest.mark.real
ATTRIBUTES = {"gender": "gender", "race": "race", "age": "age", "Skin Tone": "skin_tone"}
"""Their names of the attributes, and ours."""
_CELL = re.compile(r"(?:(?P<plain>overall_mean|p_value|statistic)|(?P<group>.+)_mean)_template_(?P<k>\d)")
_WORDINGS = {
    "ANOVA_F": "template_anova",
    "ANOVA_p": "template_anova_p",
    "Friedman_stat": "template_friedman",
    "Friedman_p": "template_friedman_p",
}


@pytest.fixture(scope="module")
def folder(data: Path) -> Path:
    return data / "gras" / "evaluation_results"


def read_result_files(folder: Path) -> pl.DataFrame:
    """The packaged table, made from the authors' files (`<model>_<attribute>_bias_analysis.csv`)."""
    frames = []
    for path in sorted(folder.glob("*_bias_analysis.csv")):
        model, attribute = path.name.removesuffix("_bias_analysis.csv").rsplit("_", 1)
        wide = pl.read_csv(path)
        frames += [
            wide.select(
                model=pl.lit(model),
                attribute=pl.lit(ATTRIBUTES[attribute]),
                trait="trait",
                template=pl.lit(f"T{int(cell['k']) + 1}"),
                what=pl.lit(cell["plain"] or "group_mean"),
                group=pl.lit(_group(cell["group"], attribute), pl.String),
                value=pl.col(name).cast(pl.Float64),
            )
            for name in wide.columns
            if (cell := _CELL.fullmatch(name))
        ]
    return pl.concat([*frames, *_wording_tests(folder)])


def _wording_tests(folder: Path) -> list[pl.DataFrame]:
    """Their tests of the wordings (`template_sensitivity_results_<model>.csv`; the column of traits is called file)."""
    begin, absent = "template_sensitivity_results_", pl.lit(None, pl.String)
    return [
        pl.read_csv(path).select(
            model=pl.lit(path.stem.removeprefix(begin)),
            attribute=absent,
            trait="file",
            template=absent,
            what=pl.lit(what),
            group=absent,
            value=pl.col(name).cast(pl.Float64),
        )
        for path in sorted(folder.glob(f"{begin}*.csv"))
        for name, what in _WORDINGS.items()
    ]


def _group(name: str | None, attribute: str) -> str | None:
    return None if name is None else name.removeprefix(f"{attribute}_")


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
    shares = above_mean(compared.deviations, [of[trait] for trait in traits])
    return {(group, kind): shares[k, j] for k, group in enumerate(compared.groups) for j, kind in enumerate(VALENCES)}


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
