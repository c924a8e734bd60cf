"""Human ratings beside the model's: the same correlation as scipy's, departures for groups only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from beholder.core.errors import DataError
from beholder.studies.perception.prompts import DIMENSIONS, all_words
from beholder.studies.perception.ratings import rating_rows, read_ratings
from beholder.studies.perception.scores import Judged


@pytest.fixture
def judged() -> Judged:
    rng, count = np.random.default_rng(3), 60
    images = pl.DataFrame(
        {
            "image_id": [f"{i}.jpg" for i in range(count)],
            "uri": [""] * count,
            "race": rng.choice(["White", "Black"], count),
            "gender": rng.choice(["Male", "Female"], count),
        }
    )
    cells = rng.normal(size=(count, len(all_words())))
    return Judged(images, all_words(), cells, cells, cells[:, 0], DIMENSIONS, "cosine", {})


def write(path: Path, rows: list[tuple], header: str) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_correlation_and_interval_are_scipys(judged: Judged, tmp_path: Path):
    rng = np.random.default_rng(4)
    warmth = judged.by_dimension(judged.delta)[:, 0]
    means = warmth + rng.normal(size=60)
    rows = [(name, "Warmth", value, 20) for name, value in zip(judged.images["image_id"], means, strict=True)]
    ratings = read_ratings(write(tmp_path / "r.csv", rows[:50], "image,trait,mean,n"))
    rows = [row for row in rating_rows(judged, ratings) if row.metric == "perception.rating_r"]
    expected = stats.pearsonr(means[:50], warmth[:50])
    assert rows[0].value == pytest.approx(expected.statistic)
    assert (rows[0].low, rows[0].high) == pytest.approx(tuple(expected.confidence_interval()))
    assert rows[0].n == 50


def test_departures_are_told_for_groups_never_for_one_picture(judged: Judged, tmp_path: Path):
    white = (judged.images["race"] == "White").to_numpy()
    means = judged.delta[:, judged.words.index("honest")] + 3 * white
    rows = [(name, "honest", value, 9) for name, value in zip(judged.images["image_id"], means, strict=True)]
    ratings = read_ratings(write(tmp_path / "r.csv", rows, "image,trait,mean,n"))
    off = {row.group: row.value for row in rating_rows(judged, ratings) if row.metric.endswith("departure")}
    assert set(off) == {"White Male", "White Female", "Black Male", "Black Female"}
    assert off["White Male"] < 0 < off["Black Male"]


def test_means_groups_meet_group_means(judged: Judged, tmp_path: Path):
    names = ["White", "Black", "Male", "Female", "White Male", "Black Female", "nobody"]
    rows = [(name, "competence", place, 50) for place, name in enumerate(names)]
    ratings = read_ratings(write(tmp_path / "r.csv", rows, "group,trait,mean,n"))
    row = next(rating_rows(judged, ratings))
    assert row.n == 6
    assert "1 rated groups are not in this run" in row.note


def test_an_unknown_trait_is_named_and_has_no_number(judged: Judged, tmp_path: Path):
    ratings = read_ratings(write(tmp_path / "r.csv", [("0.jpg", "tall", 3, 5)], "image,trait,mean,n"))
    (row,) = rating_rows(judged, ratings)
    assert row.value is None
    assert "'tall' is neither a dimension" in row.note


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        ("trait,mean,n", ("warm", 1, 2), "one column 'image' or 'group'"),
        ("image,trait,mean", ("a", "warm", 1), "'n' is missing"),
        ("image,trait,mean,n", ("a", "warm", "high", 2), "row 2 has no mean"),
        ("image,trait,mean,n", ("a", "warm", "nan", 2), "row 2 has no mean"),
        ("image,trait,mean,n", ("a", "warm", "1", "inf"), "row 2 has no n"),
    ],
)
def test_a_faulty_table_is_refused_with_the_place(tmp_path: Path, header: str, row: tuple, message: str):
    with pytest.raises(DataError, match=message):
        read_ratings(write(tmp_path / "r.csv", [row], header))


def test_a_double_rating_is_refused(tmp_path: Path):
    rows = [("a", "warm", 1, 2), ("a", "warm", 2, 2)]
    with pytest.raises(DataError, match="more than once"):
        read_ratings(write(tmp_path / "r.csv", rows, "image,trait,mean,n"))


def test_a_group_of_one_picture_has_no_departure_of_its_own(judged: Judged, tmp_path: Path):
    """It would tell how one picture of someone was rated."""
    lone = judged.images.with_columns(
        race=pl.when(pl.col("image_id") == "7.jpg").then(pl.lit("Asian")).otherwise("race")
    )
    rows = [(name, "honest", place % 9, 9) for place, name in enumerate(lone["image_id"])]
    ratings = read_ratings(write(tmp_path / "r.csv", rows, "image,trait,mean,n"))
    rows = [r for r in rating_rows(judged._replace(images=lone), ratings) if r.metric.endswith("departure")]
    assert rows
    assert not any("Asian" in row.group for row in rows)
    assert all(row.n >= 5 and row.low < row.value < row.high for row in rows)


def test_what_is_not_independent_has_no_interval(judged: Judged, tmp_path: Path):
    """Pictures of one seed, and groups that share images."""
    rows = [(name, "honest", place % 9, 9) for place, name in enumerate(judged.images["image_id"])]
    ratings = read_ratings(write(tmp_path / "i.csv", rows, "image,trait,mean,n"))
    seeds = judged._replace(images=judged.images.with_columns(seed=pl.int_range(pl.len()) // 6))
    row = next(rating_rows(seeds, ratings))
    assert row.value is not None
    assert row.low is None
    assert "a person's pictures are not independent" in row.note
    names = ["White", "Black", "Male", "Female", "White Male"]
    groups = [(name, "honest", place, 50) for place, name in enumerate(names)]
    (row, *departures) = rating_rows(judged, read_ratings(write(tmp_path / "g.csv", groups, "group,trait,mean,n")))
    assert row.low is None
    assert "share images" in row.note
    sizes = {name: row.n for row in departures for name in [row.group]}
    assert sizes["White"] == (judged.images["race"] == "White").sum()


def test_p_values_are_corrected_over_traits(judged: Judged, tmp_path: Path):
    rng = np.random.default_rng(8)
    traits = ("honest", "warm", "poor", "meek")
    rows = [(name, trait, rng.normal(), 9) for trait in traits for name in judged.images["image_id"]]
    ratings = read_ratings(write(tmp_path / "r.csv", rows, "image,trait,mean,n"))
    rows = [row for row in rating_rows(judged, ratings) if row.metric.endswith("_r")]
    alone = []
    for trait in traits:
        people = ratings.filter(pl.col("trait") == trait)["mean"].to_numpy()
        alone.append(stats.pearsonr(people, judged.delta[:, judged.words.index(trait)]).pvalue)
    assert [row.p_value for row in rows] == pytest.approx(stats.false_discovery_control(alone))
