"""Human ratings beside the model's: the same correlation as scipy's, departures for groups only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from studies.perception.worlds import OPTIONS

from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE
from beholder.core.errors import DataError
from beholder.studies.perception.prompts import DIMENSIONS, all_words
from beholder.studies.perception.scores import Judged, rating_rows, read_ratings


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


def test_correlations_are_scipys_and_judged(judged: Judged, tmp_path: Path):
    rng = np.random.default_rng(4)
    warmth = judged.by_dimension(judged.delta)[:, 0]
    means = warmth + rng.normal(size=60)
    rows = [(name, "Warmth", value, 20) for name, value in zip(judged.images["image_id"], means, strict=True)]
    ratings = read_ratings(write(tmp_path / "r.csv", rows[:50], "image,trait,mean,n"))
    rows = [row for row in rating_rows(judged, ratings, OPTIONS) if row.metric == "perception.rating_r"]
    expected = stats.pearsonr(means[:50], warmth[:50])
    assert rows[0].value == pytest.approx(expected.statistic)
    assert rows[0].low < rows[0].value < rows[0].high
    assert rows[0].low > 0
    assert (rows[0].n, rows[0].verdict) == (50, DIFFERENCE)


def test_departures_are_told_for_groups_never_for_one_picture(judged: Judged, tmp_path: Path):
    white = (judged.images["race"] == "White").to_numpy()
    means = judged.delta[:, judged.words.index("honest")] + 3 * white
    rows = [(name, "honest", value, 9) for name, value in zip(judged.images["image_id"], means, strict=True)]
    ratings = read_ratings(write(tmp_path / "r.csv", rows, "image,trait,mean,n"))
    off = {row.group: row.value for row in rating_rows(judged, ratings, OPTIONS) if row.metric.endswith("departure")}
    assert set(off) == {"White Male", "White Female", "Black Male", "Black Female"}
    assert off["White Male"] < 0 < off["Black Male"]


def test_means_groups_meet_group_means(judged: Judged, tmp_path: Path):
    names = ["White", "Black", "Male", "Female", "White Male", "Black Female", "nobody"]
    rows = [(name, "competence", place, 50) for place, name in enumerate(names)]
    ratings = read_ratings(write(tmp_path / "r.csv", rows, "group,trait,mean,n"))
    row = next(rating_rows(judged, ratings, OPTIONS))
    assert row.n == 6
    assert "1 rated groups are not in this run" in row.note


def test_an_unknown_trait_is_named_and_has_no_number(judged: Judged, tmp_path: Path):
    ratings = read_ratings(write(tmp_path / "r.csv", [("0.jpg", "tall", 3, 5)], "image,trait,mean,n"))
    (row,) = rating_rows(judged, ratings, OPTIONS)
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
    rows = [r for r in rating_rows(judged._replace(images=lone), ratings, OPTIONS) if r.metric.endswith("departure")]
    assert rows
    assert not any("Asian" in row.group for row in rows)
    assert all(row.n >= 5 and row.low < row.value < row.high for row in rows)


def test_pictures_of_one_person_count_once_and_groups_that_share_images_are_not_judged(judged: Judged, tmp_path: Path):
    rows = [(name, "honest", place // 6, 9) for place, name in enumerate(judged.images["image_id"])]
    ratings = read_ratings(write(tmp_path / "i.csv", rows, "image,trait,mean,n"))
    seeds = judged._replace(images=judged.images.with_columns(seed=pl.int_range(pl.len()) // 20))
    row = next(rating_rows(seeds, ratings, OPTIONS))
    assert (row.value is not None, row.verdict) == (True, TOO_LITTLE)  # three people
    names = ["White", "Black", "Male", "Female", "White Male"]
    groups = [(name, "honest", place, 50) for place, name in enumerate(names)]
    ratings = read_ratings(write(tmp_path / "g.csv", groups, "group,trait,mean,n"))
    (row, *departures) = rating_rows(judged, ratings, OPTIONS)
    assert row.verdict == TOO_LITTLE
    assert "share images" in row.note
    sizes = {row.group: row.n for row in departures}
    assert sizes["White"] == (judged.images["race"] == "White").sum()


def test_traits_are_one_family(judged: Judged, tmp_path: Path):
    """Of 30 traits rated at random some agree by chance: none is called."""
    draw, words = np.random.default_rng(8), judged.words[:30]
    rows = [(name, trait, draw.normal(), 9) for trait in words for name in judged.images["image_id"]]
    ratings = read_ratings(write(tmp_path / "r.csv", rows, "image,trait,mean,n"))
    rows = [row for row in rating_rows(judged, ratings, OPTIONS) if row.metric.endswith("_r")]
    alone = [
        stats.pearsonr(ratings.filter(trait=word)["mean"], judged.delta[:, judged.words.index(word)]).pvalue
        for word in words
    ]
    assert min(alone) < 0.05
    assert {row.verdict for row in rows} == {NONE_FOUND}
