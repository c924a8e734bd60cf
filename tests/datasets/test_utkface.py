"""UTKFace: labels come from names; names that do not parse are listed, never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.core.errors import MissingData
from beholder.datasets import load_dataset
from beholder.datasets.faces import age_band
from beholder.datasets.faces import load_utkface as load

GOOD = "25_0_1_20170109150557335.jpg.chip.jpg"
ODD = (
    "61_1_20170109150557335.jpg.chip.jpg",  # race is missing
    "55_0_0_20170116232725357jpg.chip.jpg",  # a full stop is missing
    "24_0_1_20170116220224657 .jpg.chip.jpg",  # a blank
    "14_0_0_2017011022340900.jpg.chip.jpg",  # a digit is missing
    "28_1_2_201701161846515488.jpg.chip.jpg",  # a digit too many
    "30_2_1_20170109150557335.jpg.chip.jpg",  # no such gender
    "30_1_7_20170109150557335.jpg.chip.jpg",  # no such race
)


def test_labels_are_read_from_names_in_the_sources_words(tmp_path: Path):
    (tmp_path / "UTKFace").mkdir()
    (tmp_path / "UTKFace" / GOOD).touch()
    row = load(tmp_path).table.row(0, named=True)
    assert load(tmp_path).notes == ()
    assert (row["image_id"], row["age"], row["gender"], row["race"]) == (GOOD, 25, "Male", "Black")
    assert Path(row["uri"]) == tmp_path / "UTKFace" / GOOD


def test_names_that_do_not_parse_are_listed_and_left_out(tmp_path: Path):
    for name in (GOOD, *ODD, "readme.txt"):
        (tmp_path / name).touch()
    dataset = load(tmp_path)
    assert dataset.table["image_id"].to_list() == [GOOD]
    (note,) = dataset.notes
    assert note.startswith("7 names do not parse")
    assert all(repr(name) in note for name in ODD)


def test_a_folder_without_pictures_says_what_was_expected(tmp_path: Path):
    with pytest.raises(MissingData, match="UTKFace"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("age", "band"),
    [(0, "0-2"), (3, "3-9"), (19, "10-19"), (20, "20-29"), (69, "60-69"), (70, "more than 70"), (116, "more than 70")],
)
def test_bands_are_fairfaces(age: int, band: str):
    assert age_band(age) == band


@pytest.mark.real
def test_the_public_copy_has_eight_names_that_do_not_parse(data: Path):
    dataset = load_dataset("utkface", data)
    assert len(dataset) == 2200
    assert dataset.notes[0].startswith("8 names do not parse")
