"""Any folder of pictures with a table is a data set; what is wrong with it is said by name."""

from __future__ import annotations

import csv
import unicodedata
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from beholder.core.errors import BadImage, DataError, MissingData
from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset
from beholder.datasets.images import open_image


def test_a_folder_with_a_table_is_a_data_set(people):
    dataset = load_dataset(f"folder:{people(4)}")
    assert dataset.name == "folder:people"
    assert dataset.attributes == ["name", "gender"]
    assert dataset.table["image_id"].to_list() == [f"{i:05}.png" for i in range(4)]


def test_a_parquet_table_keeps_its_types(people):
    folder = people(3)
    table = pl.read_csv(folder / "people.csv").with_columns(age=pl.Series([20, 30, 40]))
    (folder / "people.csv").unlink()
    table.write_parquet(folder / "people.parquet")
    assert load_dataset(f"folder:{folder}").attribute("age").to_list() == [20, 30, 40]


def test_its_revision_follows_the_table(people):
    folder = people(3)
    before = load_dataset(f"folder:{folder}").revision
    (folder / "people.csv").write_text((folder / "people.csv").read_text().replace("woman", "man"))
    assert load_dataset(f"folder:{folder}").revision != before


def test_two_tables_ask_which(people):
    folder = people(2)
    (folder / "more.csv").write_text("image\n00000.png\n")
    with pytest.raises(DataError, match=r"has several tables: more\.csv, people\.csv"):
        load_dataset(f"folder:{folder}")
    assert len(load_dataset(f"folder:{folder}/more.csv")) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("picture,gender\n00000.png,woman\n", "no column names the images"),
        ("image\n00000.png\n00000.png\n", "occur more than once"),
        ("image\n../secret.png\n", "lies outside the folder"),
        ("image\n/etc/passwd\n", "lies outside the folder"),
        ("image,gender\n,woman\n", "row 2 of the table names no image"),
        ("image\nhttp://x/a.png\n", "lies outside the folder"),
        ("", "is empty"),
        ("image,gender\n", "has a header and no rows"),
        ("image,Gender, gender\na,b,c\n", "the columns 'Gender', 'gender' have the same name"),
        ("image,image\na,b\n", "occurs more than once"),
    ],
)
def test_a_bad_table_is_refused_with_the_reason(people, text: str, message: str):
    folder = people(2)
    (folder / "people.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load_dataset(f"folder:{folder}")


def test_text_that_is_not_utf8_is_refused(people):
    folder = people(2)
    (folder / "people.csv").write_bytes(b"image,name\n00000.png,Jos\xe9\n")
    with pytest.raises(DataError, match=r"people.csv: line 2 is not UTF-8"):
        load_dataset(f"folder:{folder}")


def test_a_damaged_parquet_is_refused(people):
    folder = people(2)
    (folder / "people.csv").unlink()
    (folder / "people.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        load_dataset(f"folder:{folder}")


def test_no_folder_is_said(tmp_path: Path):
    with pytest.raises(MissingData, match="no folder and no table"):
        load_dataset(f"folder:{tmp_path}/nowhere")


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path, "PNG")


def test_columns_are_found_whatever_their_case_and_names_whatever_their_spelling(tmp_path: Path):
    files = ["Ältere Frau.PNG", "sub/two words.png", "3.jpeg", "4.png"]
    for file in files:
        picture(tmp_path / unicodedata.normalize("NFD", file))
    names = ["ältere frau.png", "sub\\two words.png", "3", "4.png", "gone.png"]
    rows = "".join(f"{name};w;x\r\n" for name in names)
    (tmp_path / "people.csv").write_bytes(f" File_Name ; Gender; Skin Tone \r\n{rows}".encode("utf-8-sig"))
    dataset = load_dataset(f"folder:{tmp_path}")
    assert dataset.attributes == ["gender", "skin_tone"]
    assert dataset.attribute("Gender").to_list() == dataset.attribute("gender").to_list()
    assert [Path(uri).is_file() for uri in dataset.table["uri"]] == [True] * 4 + [False]
    assert dataset.notes[0].startswith("3 names are spelled otherwise than their files, such as 'ältere frau.png'")


def test_a_spelling_that_two_files_have_means_neither(tmp_path: Path):
    for file in ("a.png", "A.png"):
        picture(tmp_path / file)
    (tmp_path / "people.csv").write_text("image\na.PNG\n")
    (uri,) = load_dataset(f"folder:{tmp_path}").table["uri"]
    assert not Path(uri).exists()


def test_the_column_whose_files_are_there_names_the_images(people):
    folder = people(2)
    (folder / "people.csv").write_text("image_id,image,path\n1,Ann,00000.png\n2,Bo,00001.png\n")
    dataset = load_dataset(f"folder:{folder}")
    assert dataset.table["image_id"].to_list() == ["00000.png", "00001.png"]
    assert dataset.attributes == ["image"]


def test_an_imagefolder_has_a_metadata_file_in_each_split(tmp_path: Path):
    for split in ("train", "test"):
        picture(tmp_path / split / "0.png")
        (tmp_path / split / "metadata.jsonl").write_text(f'{{"file_name": "0.png", "Age": {len(split)}}}\n')
    dataset = load_dataset(f"folder:{tmp_path}")
    assert dataset.table.drop("uri").rows() == [("test/0.png", 4, "test"), ("train/0.png", 5, "train")]
    assert all(Path(uri).is_file() for uri in dataset.table["uri"])


def test_a_folder_for_each_class_is_an_attribute(tmp_path: Path):
    for name in ("train/man/0.PNG", "train/woman/1.png", "test/man/0.png"):
        picture(tmp_path / name)
    dataset = load_dataset(f"folder:{tmp_path}", settings={"label": "Gender"})
    assert sorted(dataset.table["gender"]) == ["man", "man", "woman"]
    assert sorted(dataset.table["split"]) == ["test", "train", "train"]
    assert load_dataset(f"folder:{tmp_path}").attributes[0] == "folder"


def test_pictures_without_labels_ask_for_a_table(tmp_path: Path):
    picture(tmp_path / "0.png")
    with pytest.raises(DataError, match=r"has 1 images and no table of attributes(.|\n)*Write one, such as"):
        load_dataset(f"folder:{tmp_path}")


@pytest.mark.parametrize(
    "cell",
    [
        'crop:{"path": "SECRET", "box": [0, 0, 8, 8]}',
        "wds:SECRET#0+9999#a.png",
        "hf:SECRET#0+0#image",
        'perturbed:{"change": "resized to one pixel more", "uri": "SECRET"}',
        'crop:{"path":"http:\\/\\/127.0.0.1:9\\/a.png", "box": [0, 0, 8, 8]}',
    ],
)
def test_a_cell_is_a_file_name_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str):
    """Not even where the folder is named by no more than a dot, so that nothing stands before the cell's text."""
    secret = tmp_path / "secret.png"
    Image.new("RGB", (8, 8), "red").save(secret)
    (tmp_path / "open").mkdir()
    cell = cell.replace("SECRET", str(secret).replace("/", "\\/") if "{" in cell else str(secret))
    with (tmp_path / "open" / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["image", "gender"], [cell, "woman"]])
    monkeypatch.chdir(tmp_path / "open")
    for place in ("folder:.", "folder:people.csv"):
        try:
            uris = load_dataset(place).table["uri"].to_list()
        except DataError:  # a name that leads out
            continue
        with pytest.raises(BadImage, match="the file does not exist"):
            open_image(uris[0])


def test_a_table_made_in_python_holds_files_and_no_parts_of_them():
    for uri in ('crop:{"path": "/x.png", "box": [0, 0, 8, 8]}', "wds:/x.tar#0+9#a", "hf:/x.parquet#0+0#image", "hf:x"):
        with pytest.raises(DataError, match="no address of a file"):
            Dataset("own", "1", "own", pl.DataFrame({"image_id": ["a"], "uri": [uri]}))
    Dataset("own", "1", "own", pl.DataFrame({"image_id": ["a"], "uri": ["hf://datasets/people/a.jpg"]}))
