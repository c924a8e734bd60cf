"""The study's part of FairFace and UTKFace: its rule, its count, and what the released balancing takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder.datasets import load_dataset
from beholder.datasets.faces import MIDPOINTS, adults, balanced, load_fairface, load_utkface

LABELS = """file,age,gender,race,service_test
train/1.jpg,20-29,Male,East Asian,True
train/2.jpg,more than 70,Female,Southeast Asian,True
train/3.jpg,10-19,Male,White,True
train/4.jpg,40-49,Male,Indian,True
train/5.jpg,60-69,Female,Black,True
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fairface_label_train.csv").write_text(LABELS)
    return tmp_path


def test_asians_are_joined_children_and_others_left_out(folder: Path):
    table = adults(load_fairface(folder)).table
    assert table["image_id"].to_list() == ["train/1.jpg", "train/2.jpg", "train/5.jpg"]
    assert table["race"].to_list() == ["Asian", "Asian", "Black"]
    assert table["source_race"].to_list() == ["East Asian", "Southeast Asian", "Black"]


def test_bands_stand_at_their_midpoints(folder: Path):
    assert adults(load_fairface(folder)).table["age"].to_list() == [25.0, 70.0, 65.0]
    bands = {f"{low}-{low + 9}": low + 5.0 for low in range(20, 70, 10)}
    assert bands | {"more than 70": 70.0} == MIDPOINTS


def test_twenty_is_an_adult_and_nineteen_is_not(tmp_path: Path):
    """UTKFace tells years: age, gender and race are in the name."""
    for years in (19, 20, 21):
        (tmp_path / f"{years}_0_2_20170109150557335.jpg.chip.jpg").touch()
    found = adults(load_utkface(tmp_path))
    assert found.table["age"].to_list() == [20.0, 21.0]
    assert set(found.table["race"]) == {"Asian"}
    assert "of the 14630 images that the study takes, the tables here list 2" in found.notes


def test_the_notes_tell_the_studys_part_from_the_rest(folder: Path):
    (folder / "fairface_label_val.csv").write_text(LABELS.replace("train/", "val/"))
    assert "of the 38744 images that the study takes, the tables here list 3" in adults(load_fairface(folder)).notes


def test_the_released_balance_takes_a_sixth_of_each_group_or_all_of_a_smaller_one():
    """Every group is drawn with the same seed, as pandas does: groups of one size give the same places."""
    table = pl.DataFrame({"race": ["a"] * 9 + ["b"] * 9 + ["c"] * 2, "gender": ["m"] * 20})
    taken = balanced(table)
    assert taken[:9] == taken[9:18]
    assert (sum(taken[:9]), sum(taken[18:])) == (3, 2)
    places = np.random.RandomState(42).choice(9, size=3, replace=False)
    assert np.flatnonzero(taken[:9]).tolist() == sorted(places)


def test_the_released_balance_is_drawn_from_the_studys_part_alone():
    table = pl.DataFrame({"race": ["a"] * 12, "gender": ["m"] * 12})
    assert not any(balanced(table, pl.Series([False] * 6 + [True] * 6))[:6])


@pytest.mark.real
def test_the_rule_gives_the_studys_38744_images_and_says_nothing_of_missing_ones(data: Path):
    found = load_dataset("fairface-adults", data)
    assert found.table.filter(pl.col("split") == "train").height == 38_744
    assert not any("38744" in note for note in found.notes)


@pytest.mark.real
def test_the_released_balance_leaves_34502_adults_of_whom_24_per_cent_are_black(data: Path):
    table = load_dataset("fairface-adults", data).table.filter("released_balance")
    assert table.height == 34_502
    assert set(table["split"]) == {"train"}
    assert (table["race"] == "Black").mean() == pytest.approx(0.24, abs=0.005)
