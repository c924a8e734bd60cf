"""APA on the golden arrays: equal to float64 means of the same softmax, and to the authors' files in compat."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder._measure import measure_scores
from beholder._options import AuditOptions
from beholder.core.results import PLAIN
from beholder.datasets.apa import BRANCHES
from beholder.studies import STUDIES

pytestmark = pytest.mark.real
SUBSETS = {"actors": ["actors"], "politician": ["house", "senate", "mayors"], "athletes": ["athletes"]}
SPORTS = [
    "Football",
    "Tennis",
    "Basketball",
    "Soccer",
    "Racing",
    "Martial Arts",
    "Snowboarding",
    "Softball",
    "Baseball",
    "Track",
    "Golf",
    "Hockey",
    "Swimming",
    "Boxing",
    "Biking",
    "Gymnastics",
]
OFFICE = {"senate": 1, "mayors": 3, "house": 5}


def results(golden: Path, data: Path, out: Path, *, compat: bool) -> pl.DataFrame:
    options = AuditOptions(out=out, store=out, data=data, compat=compat, draws=100)
    run = measure_scores(STUDIES["apa"], sorted(golden.glob("*.npy")), options, model="golden")
    assert run.record.left_out == []
    return run.results


@pytest.fixture(scope="module")
def exact(golden: Path, data: Path, tmp_path_factory) -> pl.DataFrame:
    return results(golden, data, tmp_path_factory.mktemp("exact"), compat=False)


@pytest.fixture(scope="module")
def compat(golden: Path, data: Path, tmp_path_factory) -> pl.DataFrame:
    return results(golden, data, tmp_path_factory.mktemp("compat"), compat=True)


def value(table: pl.DataFrame, metric: str, **where: str) -> float:
    (found,) = table.filter(pl.col("metric") == metric, PLAIN, **where)["value"].to_list()
    return found


# An independent reading of the tables and the arrays: csv, loops, plain exponentials.


def people(data: Path, branch: str) -> list[dict[str, str]]:
    with (data / "apa" / "benchmark-data-v1" / f"{branch}.txt").open(encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    return [dict(zip(rows[0], (cell.strip() for cell in row), strict=True)) for row in rows[1:]]


def shares(logits: np.ndarray) -> np.ndarray:
    return np.stack([np.exp(row - row.max()) / np.exp(row - row.max()).sum() for row in logits.astype(np.float64)])


def levels(golden: Path, branch: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    logits = np.load(golden / f"logits_{branch}.npy")
    return shares(logits[:, :7]), shares(logits[:, 7:16]), shares(logits[:, 16:])


def right_columns(data: Path, branch: str) -> Iterator[tuple[int, int, int]]:
    for person in people(data, branch):
        woman = person["gender"] == "woman"
        if branch == "actors":
            yield 0, 8 if woman else 7, 2 * int(person["academy_award"]) + woman
        elif branch == "athletes":
            yield 0, 2, SPORTS.index(person["sport"])
        else:
            yield 0, 0, OFFICE[branch]


@pytest.mark.parametrize("branch", BRANCHES)
def test_association_equals_the_obvious_loop(exact: pl.DataFrame, golden: Path, data: Path, branch: str):
    columns = list(right_columns(data, branch))
    for k, (concept, level) in enumerate(
        zip(("category", "occupation", "specialty"), levels(golden, branch), strict=True)
    ):
        loop = [level[i, right[k]] for i, right in enumerate(columns)]
        hits = [level[i].argmax() == right[k] for i, right in enumerate(columns)]
        assert value(exact, "apa.association", subset=branch, concept=concept) == pytest.approx(np.mean(loop), abs=1e-6)
        assert value(exact, "apa.association_top1", subset=branch, concept=concept) == pytest.approx(np.mean(hits))


@pytest.mark.parametrize("branch", [name for name in BRANCHES if name != "athletes"])
def test_identity_equals_the_obvious_loop(exact: pl.DataFrame, golden: Path, branch: str):
    logits = np.load(golden / f"identity_logits_{branch}.npy")
    for metric, cells in (("apa.identity_given_image", logits), ("apa.identity_given_name", logits.T)):
        diagonal = np.diag(shares(cells))
        ranks = [1 + (row > row[i]).sum() + ((row == row[i]).sum() - 1) / 2 for i, row in enumerate(cells)]
        assert value(exact, metric, subset=branch) == pytest.approx(diagonal.mean(), abs=1e-6)
        assert value(exact, f"{metric}_mrr", subset=branch) == pytest.approx(np.mean([1 / r for r in ranks]))


def test_either_photograph_is_right_for_the_athlete_who_stands_twice(exact: pl.DataFrame, golden: Path, data: Path):
    logits, names = (np.load(golden / "identity_logits_athletes.npy"), [p["names"] for p in people(data, "athletes")])
    last = {name: i for i, name in enumerate(names)}
    unique = sorted(last.values())
    by_image = shares(logits[:, unique])
    given_image = [by_image[i, unique.index(last[name])] for i, name in enumerate(names)]
    by_name = shares(logits.T[unique])
    given_name = [
        by_name[k, [i for i, n in enumerate(names) if n == names[column]]].sum() for k, column in enumerate(unique)
    ]
    assert value(exact, "apa.identity_given_image", subset="athletes") == pytest.approx(np.mean(given_image), abs=1e-6)
    assert value(exact, "apa.identity_given_name", subset="athletes") == pytest.approx(np.mean(given_name), abs=1e-6)


@pytest.mark.parametrize("subset", SUBSETS)
def test_gender_means_and_ratio_equal_the_obvious_loop(exact: pl.DataFrame, golden: Path, data: Path, subset: str):
    ours = {"politician": "politicians"}.get(subset, subset)
    rows = [
        (p["gender"], level, right)
        for branch in SUBSETS[subset]
        for p, level, (_, right, _) in zip(
            people(data, branch), levels(golden, branch)[1], right_columns(data, branch), strict=True
        )
    ]
    right = {}
    for gender in ("woman", "man"):
        mean = np.mean([level for who, level, _ in rows if who == gender], axis=0)
        for column, occupation in enumerate(("politician", "scientist", "athlete", "teacher", "receptionist")):
            found = value(exact, "apa.occupation_probability", subset=ours, group=gender, concept=occupation)
            assert found == pytest.approx(mean[column], abs=1e-6)
        right[gender] = np.mean([level[column] for who, level, column in rows if who == gender])
    assert value(exact, "apa.bias_ratio", subset=ours) == pytest.approx(right["woman"] / right["man"], abs=1e-6)


# The authors' own files, exactly.


def expected(golden: Path, name: str) -> list[dict[str, str]]:
    with (golden / f"expected_{name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("branch", BRANCHES)
def test_compat_levels_are_the_authors(compat: pl.DataFrame, golden: Path, branch: str):
    (row,) = expected(golden, f"base-benchmark-{branch}-mean")
    published = [float(cell) for key, cell in row.items() if key != "model"]
    ours = [value(compat, "apa.association", subset=branch, concept=c) for c in ("category", "occupation", "specialty")]
    assert ours == published


@pytest.mark.parametrize("subset", SUBSETS)
def test_compat_gender_means_are_the_authors(compat: pl.DataFrame, golden: Path, subset: str):
    ours = {"politician": "politicians"}.get(subset, subset)
    for row in expected(golden, f"gender_mean_{subset}"):
        for occupation in list(row)[2:]:
            found = value(compat, "apa.occupation_probability", subset=ours, group=row["gender"], concept=occupation)
            assert f"{found:.6f}" == row[occupation]


@pytest.mark.parametrize(("metric", "file"), [("image", "all-image-score-mean"), ("name", "all-text-score-mean")])
def test_compat_identity_is_the_authors(compat: pl.DataFrame, golden: Path, metric: str, file: str):
    for row in expected(golden, file):
        found = value(compat, f"apa.identity_given_{metric}", subset=row["file"])
        assert f"{found:.6f}" == row["image_score" if metric == "image" else "text_score"]


def test_every_value_has_an_interval_that_holds_it(exact: pl.DataFrame):
    assert exact.filter(pl.col("value").is_null() | pl.col("low").is_null() | pl.col("high").is_null()).height == 0
    outside = exact.filter((pl.col("value") < pl.col("low")) | (pl.col("value") > pl.col("high")))
    assert outside.height == 0
    assert (exact["n"] > 0).all()
