"""A first look leaves no group out, is the same every time, and is part of a longer one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset
from beholder.datasets.selection import group_attributes, select
from beholder.studies import STUDIES


def sorted_people(n: int = 200) -> pl.DataFrame:
    """All men, then all women; within each the ages in order: the first rows are of one group."""
    return pl.DataFrame(
        {
            "image_id": [f"{i:03d}" for i in range(n)],
            "uri": ["x"] * n,
            "name": [f"name {i}" for i in range(n)],
            "gender": ["man"] * (n // 2) + ["woman"] * (n // 2),
            "age": np.tile(np.repeat([20, 40], n // 4), 2),
        }
    )


def test_groups_are_chosen_evenly_however_the_table_is_sorted():
    table = sorted_people()
    chosen = table[select(table, 12).rows]
    assert Counter(chosen["gender"]) == {"man": 6, "woman": 6}
    assert Counter(chosen["age"]) == {20: 6, 40: 6}


def test_two_rows_are_of_different_groups():
    table = sorted_people()
    assert table[select(table, 2).rows]["gender"].n_unique() == 2


@pytest.mark.parametrize("count", [1, 7, 50, 200, 300])
def test_fewer_rows_are_part_of_more_and_the_same_every_time(count: int):
    table = sorted_people()
    few, more = select(table, count).rows, select(table, count + 5).rows
    assert few == select(table, count).rows == sorted(few)
    assert len(few) == min(count, 200)
    assert set(few) <= set(more)


def test_a_small_group_is_taken_whole_before_others_take_its_place():
    table = sorted_people().with_columns(gender=pl.Series(["man"] * 197 + ["woman"] * 3))
    chosen = table[select(table, 20).rows]
    assert Counter(chosen["gender"])["woman"] == 3


def test_matched_sets_come_one_by_one():
    """Ten rows of a design with sets of six: one set whole, and of the next some of every group."""
    table = pl.DataFrame(
        {
            "image_id": [str(i) for i in range(24)],
            "uri": ["x"] * 24,
            "seed": [str(i % 4) for i in range(24)],
            "pose": np.arange(24) // 4 % 3,
            "gender": np.repeat(["man", "woman"], 12),
        }
    )
    chosen = table[select(table, 10).rows]
    assert sorted(Counter(chosen["seed"]).values()) == [4, 6]
    second = chosen.filter(seed="1")
    assert (second["gender"].n_unique(), second["pose"].n_unique()) == (2, 3)


def test_what_names_everyone_apart_divides_nobody():
    assert group_attributes(sorted_people()) == ["gender", "age"]


def test_rows_without_groups_are_the_first():
    table = sorted_people().select("image_id", "uri", "name")
    assert select(table, 3).rows == [0, 1, 2]


def test_rows_without_a_label_are_a_group_of_their_own():
    table = sorted_people().drop("age").with_columns(gender=pl.Series([None] * 150 + ["woman"] * 50))
    assert table[select(table, 4).rows]["gender"].null_count() == 2


@pytest.mark.parametrize(
    ("name", "by", "count", "attribute"),
    [
        ("glasshouse-design", "race", 8, "gender"),
        ("glasshouse-design", "race", 8, "skin_tone"),
        ("glasshouse-faces", "race", 10, "skin_tone"),
        ("glasshouse", "branch", 2, "gender"),
    ],
)
def test_no_group_of_the_drawn_people_is_left_out(name: str, by: str, count: int, attribute: str):
    whole = load_dataset(name)
    assert set(whole.limit(count, by=by).table[attribute]) == set(whole.table[attribute])


def test_the_count_is_of_every_value_of_by():
    table = sorted_people()
    dataset = Dataset("d", "1", "none", table).limit(3, by="gender")
    assert Counter(dataset.table["gender"]) == {"man": 3, "woman": 3}


def test_no_two_attributes_fall_together_where_the_data_allow_it():
    """Six images of each race, of ten ages and genders: every age has women and men."""
    cells = [(race, age, sex) for race in "abcdefg" for age in (30, 40, 50, 60, 70) for sex in ("man", "woman")]
    table = pl.DataFrame(cells * 3, schema=["race", "age", "gender"], orient="row").sort("gender")
    chosen = select(table, 6, ("race", "age", "gender"), each="race")
    counts = table[chosen.rows].group_by("age", "gender").len()["len"].to_list()
    assert len(counts) == 10
    assert max(counts) - min(counts) <= 1
    assert chosen.uneven == ()


def test_other_people_come_before_other_pictures_of_one():
    who = np.arange(200) // 4
    table = sorted_people()
    chosen = select(table, 40, ("gender",), people=who)
    assert len(set(who[chosen.rows])) == 40
    assert set(chosen.rows) <= set(select(table, 60, ("gender",), people=who).rows)


def test_what_could_not_be_balanced_is_said():
    table = sorted_people(40).with_columns(age=pl.Series(["old"] * 19 + ["young"] * 20 + ["old"]))
    chosen = select(table, 20, ("gender", "age"))
    (together,) = chosen.uneven
    assert together.attributes == ("gender", "age")
    assert str(together).startswith("gender and age fall together: man old")
    few = select(table.with_columns(gender=pl.Series(["man"] * 37 + ["woman"] * 3)), 20, ("gender",))
    assert few.as_dict() == {"over": ["gender"], "uneven": ["gender is uneven: man 17, woman 3"], "each": None}


@pytest.mark.real
def test_gras_has_every_age_gender_and_skin_tone_of_a_few(data: Path):
    """Ten of each race, and ten of the part without a race: one of every skin tone."""
    few = load_dataset("gras", data).limit(10, by="race").table
    assert few["skin_tone"].drop_nulls().sort().to_list() == sorted(str(tone) for tone in range(1, 11))
    counts = few.drop_nulls("race").group_by("race", "gender").len()
    assert counts["len"].to_list() == [5] * 14
    assert few["age"].drop_nulls().n_unique() == 5


@pytest.mark.real
def test_six_of_each_race_of_gras_have_women_and_men_of_every_age(data: Path):
    gras = load_dataset("gras", data)
    few = gras.selected(STUDIES["gras"].select(gras, 6)).table.drop_nulls("age")
    counts = few.group_by("age", "gender").len()["len"].to_list()
    assert len(counts) == 10
    assert max(counts) - min(counts) <= 1
