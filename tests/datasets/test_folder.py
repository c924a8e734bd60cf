"""Any folder of pictures with a table is a data set; what is wrong with it is said by name."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import DataError, MissingData
from beholder.datasets import open_dataset


def test_a_folder_with_a_table_is_a_data_set(people):
    dataset = open_dataset(f"folder:{people(4)}")
    assert dataset.name == "folder:people"
    assert dataset.attributes == ["name", "gender"]
    assert dataset.table["image_id"].to_list() == [f"{i:05}.png" for i in range(4)]


def test_a_parquet_table_keeps_its_types(people):
    folder = people(3)
    table = pl.read_csv(folder / "people.csv").with_columns(age=pl.Series([20, 30, 40]))
    (folder / "people.csv").unlink()
    table.write_parquet(folder / "people.parquet")
    assert open_dataset(f"folder:{folder}").attribute("age").to_list() == [20, 30, 40]


def test_its_revision_follows_the_table(people):
    folder = people(3)
    before = open_dataset(f"folder:{folder}").revision
    (folder / "people.csv").write_text((folder / "people.csv").read_text().replace("woman", "man"))
    assert open_dataset(f"folder:{folder}").revision != before


def test_two_tables_ask_which(people):
    folder = people(2)
    (folder / "more.csv").write_text("image\n00000.png\n")
    with pytest.raises(DataError, match=r"it has: more\.csv, people\.csv"):
        open_dataset(f"folder:{folder}")
    assert len(open_dataset(f"folder:{folder}/more.csv")) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("picture,gender\n00000.png,woman\n", "no column names the images"),
        ("image\n00000.png\n00000.png\n", "occur more than once"),
        ("image\n../secret.png\n", "lies outside the folder"),
        ("image\n/etc/passwd\n", "lies outside the folder"),
        ("image,gender\n,woman\n", "row 2 of the table names no image"),
        ("", "is empty"),
        ("image,image\na,b\n", "occurs more than once"),
    ],
)
def test_a_bad_table_is_refused_with_the_reason(people, text: str, message: str):
    folder = people(2)
    (folder / "people.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        open_dataset(f"folder:{folder}")


def test_text_that_is_not_utf8_is_refused(people):
    folder = people(2)
    (folder / "people.csv").write_bytes(b"image,name\n00000.png,Jos\xe9\n")
    with pytest.raises(DataError, match=r"people.csv: line 2 is not UTF-8"):
        open_dataset(f"folder:{folder}")


def test_a_damaged_parquet_is_refused(people):
    folder = people(2)
    (folder / "people.csv").unlink()
    (folder / "people.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        open_dataset(f"folder:{folder}")


def test_no_folder_is_said(tmp_path: Path):
    with pytest.raises(MissingData, match="no folder and no table"):
        open_dataset(f"folder:{tmp_path}/nowhere")
