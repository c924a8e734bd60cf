"""GRAS's lists: both or one of them, with the groups that deviate from the published balance."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from beholder.core.errors import DataError, MissingData
from beholder.datasets import faces as gras
from beholder.datasets.dataset import Dataset, ImageDigests
from beholder.datasets.faces import load_gras as load
from beholder.datasets.images import open_image

FAIRFACE = "file,gender,race,age\nFairFace/train/1.jpg,Male,White,20-29\nFairFace/val/2.jpg,Female,Black,30-39\n"
AIFACE = "file,Skin Tone\nAIFace/a/3.png,7\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gras").mkdir()
    (tmp_path / "gras" / "selected_images_fairface.csv").write_text(FAIRFACE)
    return tmp_path / "gras"


def test_both_lists_are_one_table_whose_images_lie_in_the_parts_own_folders(folder: Path):
    (folder / "selected_images_aiface.csv").write_text(AIFACE)
    table = load(folder).table
    assert table["image_id"].to_list() == ["FairFace/train/1.jpg", "FairFace/val/2.jpg", "AIFace/a/3.png"]
    places = [f"{folder.parent}/{rest}" for rest in ("fairface/train/1.jpg", "fairface/val/2.jpg", "aiface/a/3.png")]
    assert table["uri"].to_list() == places
    assert table["part"].to_list() == ["fairface", "fairface", "aiface"]
    assert table["skin_tone"].cast(pl.String).to_list() == [None, None, "7"]
    assert table["gender"].to_list() == ["Male", "Female", None]


def test_ai_face_images_have_a_source_and_a_person_as_far_as_their_names_tell(folder: Path):
    names = [
        "AIFace/FFHQ/69706.png",
        "AIFace/imdb_wiki/imdb/79/nm0000379_rm4285046272_1982-4-30_2002_face1.jpg",
        "AIFace/imdb_wiki/imdb/79/nm0000379_rm1_1982-4-30_1999_face1.jpg",
        "AIFace/imdb_wiki/wiki/22/2119922_1936-07-08_1961_face1.jpg",
    ]
    (folder / "selected_images_aiface.csv").write_text("file,Skin Tone\n" + "".join(f"{name},1\n" for name in names))
    table = load(folder).table.filter(pl.col("part") == "aiface")
    assert table["source"].to_list() == ["FFHQ", "imdb_wiki/imdb", "imdb_wiki/imdb", "imdb_wiki/wiki"]
    people = table["person"].to_list()
    assert people[0] is None
    assert people[1] == people[2] != people[3]


@pytest.mark.real
def test_the_published_list_has_224_images_of_people_with_several(data: Path):
    table = load(data / "gras").table
    people = table["person"].drop_nulls().value_counts()
    assert (people["count"].sum(), people.filter(pl.col("count") > 1)["count"].sum()) == (1034, 224)
    tones = table.filter(pl.col("source") == "FFHQ")["skin_tone"].value_counts()
    assert dict(tones.iter_rows())["3"] == 68
    assert dict(tones.iter_rows())["10"] == 14


def test_a_list_that_is_not_there_is_said_and_no_list_is_an_error(folder: Path):
    assert "the aiface list is not there" in load(folder).notes
    (folder / "selected_images_fairface.csv").unlink()
    with pytest.raises(MissingData, match=r"expected selected_images_fairface\.csv"):
        load(folder)


def test_a_list_without_its_columns_is_refused(folder: Path):
    (folder / "selected_images_aiface.csv").write_text("file,tone\nAIFace/1.png,7\n")
    with pytest.raises(DataError, match="Skin Tone"):
        load(folder)


def test_groups_of_another_size_than_published_are_named_and_others_not(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gras, "BALANCE", {"gender": 1, "race": 2, "skin_tone": 3})
    assert gras.imbalances(load(folder).table) == ["race is not balanced as published (2 each): Black 1, White 1"]


def test_the_published_balance_is_that_of_the_published_selection():
    """3,570 images of FairFace in two genders, seven races and five ages; 1,440 of AI-Face in ten tones."""
    assert gras.BALANCE == {"gender": 3570 // 2, "race": 3570 // 7, "age": 3570 // 5, "skin_tone": 1440 // 10}
    assert gras.GRAS.images == 3570 + 1440


@pytest.mark.parametrize(("name", "said"), [("FairFace/../../x.jpg", "outside the folder"), ("", "names no image")])
def test_a_name_that_leads_nowhere_is_refused(folder: Path, name: str, said: str):
    (folder / "selected_images_fairface.csv").write_text(f"{FAIRFACE}{name},Male,White,20-29\n")
    with pytest.raises(DataError, match=f"row 4 .*{said}"):
        load(folder)


def test_released_squares_can_be_changed_once_more(tmp_path: Path):
    """`--compat --perturb 1`: the digest knows both changes, and the picture is opened through both."""
    Image.new("RGB", (40, 60), "red").save(tmp_path / "a.png")
    table = pl.DataFrame({"image_id": ["a"], "uri": [str(tmp_path / "a.png")], "part": ["aiface"]})
    plain = Dataset("gras", "1", "own", table)
    square = gras.as_released(plain)
    twice = square.perturbed("resized to one pixel less")
    assert open_image(square.table["uri"][0]).size == (256, 256)
    assert open_image(twice.table["uri"][0]).size == (255, 255)
    digests = [ImageDigests(tmp_path).of(each.table["uri"].to_list())[0] for each in (plain, square, twice)]
    assert None not in digests
    assert len(set(digests)) == 3
