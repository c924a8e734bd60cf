"""FairFace and GRAS's selection of it: as published, damaged by a spreadsheet, or only partly here."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.core.errors import DataError, MissingData
from beholder.datasets import load_dataset
from beholder.datasets.faces import load_fairface as load
from beholder.datasets.faces import mend_fairface as mend

HEADER = "file,age,gender,race,service_test\n"


def labels(folder: Path, *ages: str) -> Path:
    rows = [f"val/{i}.jpg,{age},Female,Black,False" for i, age in enumerate(ages)]
    (folder / "fairface_label_val.csv").write_text(HEADER + "\n".join(rows) + "\n")
    return folder


def test_labels_keep_the_sources_words(tmp_path: Path):
    table = load(labels(tmp_path, "3-9", "more than 70")).table
    assert table["image_id"].to_list() == ["val/0.jpg", "val/1.jpg"]
    assert table["age"].to_list() == ["3-9", "more than 70"]


@pytest.mark.parametrize("damaged", ["9-Mar", "Oct-19", "3-Sep"])
def test_a_table_that_a_spreadsheet_damaged_is_refused_with_the_reason(tmp_path: Path, damaged: str):
    with pytest.raises(DataError, match=rf"(?s)spreadsheet.*{damaged}.*beholder data mend fairface"):
        load(labels(tmp_path, "20-29", damaged))


def test_it_can_be_mended_and_the_damaged_one_is_kept(tmp_path: Path):
    labels(tmp_path, "9-Mar", "Oct-19", "20-29")
    (said,) = mend(tmp_path)
    assert "2 ages mended" in said
    assert load(tmp_path).table["age"].to_list() == ["3-9", "10-19", "20-29"]
    assert (tmp_path / "fairface_label_val.csv.damaged").is_file()


def test_an_unknown_age_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="unknown age bands old"):
        load(labels(tmp_path, "old"))


def test_no_labels_are_said(tmp_path: Path):
    with pytest.raises(MissingData, match="No FairFace labels"):
        load(tmp_path)


def test_images_that_are_not_here_are_left_out_and_counted(tmp_path: Path):
    dataset = load(labels(tmp_path, "20-29", "30-39"))
    (tmp_path / "val").mkdir()
    (tmp_path / "val" / "1.jpg").write_bytes(b"x")
    present = dataset.present()
    assert present.table["image_id"].to_list() == ["val/1.jpg"]
    assert "1 of 2 images are missing and left out" in present.notes


@pytest.mark.real
def test_the_published_labels_are_complete(data: Path):
    dataset = load_dataset("fairface", data)
    assert len(dataset) == 97_698
    assert len(dataset.present()) == 6_482


@pytest.mark.real
def test_gras_is_balanced_as_published_and_its_images_are_found(data: Path):
    dataset = load_dataset("gras", data)
    assert len(dataset) == 5_010
    assert dataset.notes == ()
    present = dataset.present()
    assert len(present) == 1_674
    assert all(Path(uri).is_file() for uri in present.table["uri"])
    assert any(note.startswith("race is not balanced as published") for note in present.notes)


@pytest.mark.parametrize("name", ["../../elsewhere.jpg", "/etc/picture.jpg"])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str):
    (tmp_path / "fairface_label_val.csv").write_text(f"{HEADER}{name},20-29,Female,Black,False\n")
    with pytest.raises(DataError, match=r"row 2 names .* which lies outside the folder"):
        load(tmp_path)
