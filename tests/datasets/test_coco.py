"""COCO: groups from captions' words, boxes from instances, every filter counted; faults are told with their place."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from beholder.core.errors import DataError, MissingData, UnknownName, UsageError
from beholder.datasets import load_dataset
from beholder.datasets.coco import load
from beholder.datasets.dataset import Dataset
from beholder.datasets.settings import GENDER_WORDS

CAPTIONS = {
    1: ["A man's hat.", "Somebody rides a horse."],
    2: ["A woman with her dog"],
    3: ["A man and a woman"],
    4: ["Two boys among people"],
    5: ["A dog"],
    6: ["The lady there", "Girls play"],
    7: ["He stands."],
}
BOXES = [(1, 18, 10), (1, 18, 40), (1, 1, 100), (2, 18, 20), (2, 67, 50), (4, 1, 30), (6, 67, 60), (3, 1, 1)]
"""Image, category, height of a box 10 wide."""
CATEGORIES = [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}, {"id": 67, "name": "dining table"}]
IMAGE = {"id": 1, "file_name": "1.jpg", "width": 10, "height": 5}
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a small COCO in its own layout; images are 100 × 50."""

    def write(*, boxes: Any = BOXES, categories: Any = CATEGORIES, below: str = "annotations", **more: Any) -> Path:
        folder = tmp_path / "coco"
        place = folder / below
        place.mkdir(parents=True, exist_ok=True)
        images = [{"id": n, "file_name": f"{n:012}.jpg", "width": 100, "height": 50} for n in CAPTIONS]
        captions = [{"image_id": n, "caption": text} for n, texts in CAPTIONS.items() for text in texts]
        captions = {"info": {}, "images": images, "annotations": captions}
        (place / "captions_val2017.json").write_text(json.dumps(captions))
        annotations = [
            {"image_id": n, "category_id": category, "bbox": [0, 0, 10, height], "iscrowd": 0}
            for n, category, height in boxes
        ]
        instances = {"images": images, "annotations": annotations, "categories": categories} | more
        (place / "instances_val2017.json").write_text(json.dumps(instances))
        return folder

    return write


def steps(dataset: Dataset) -> list[int]:
    found = (re.search(r": ([\d,]+) images$", note) for note in dataset.notes if note.startswith("step"))
    return [int(match[1].replace(",", "")) for match in found if match]


def test_a_picture_belongs_to_the_one_group_its_captions_name(make: Make) -> None:
    table = load(make()).table
    assert dict(zip(table["image_id"], table["gender"], strict=True)) == {"1": "man", "2": "woman", "6": "woman"}
    assert table["uri"][0].endswith("coco/val2017/000000000001.jpg")


def test_every_filter_is_a_step_with_its_count(make: Make) -> None:
    dataset = load(make())
    assert steps(dataset) == [7, 5, 4, 4, 3]  # 7: nothing in it; 3: both; 5: nobody; 4: people
    assert "captions name no group of 1 images and several of 1" in dataset.notes
    assert dataset.notes[-1] == "gender: man 1, woman 2"


def test_objects_say_how_often_how_large_and_by_which_name(make: Make) -> None:
    dataset = load(make())
    assert dataset.objects is not None
    rows = {(image, concept): rest for image, concept, *rest in dataset.objects.iter_rows()}
    assert rows["1", "dog"] == [2, pytest.approx(40 * 10 / 5000), ["dog"]]
    assert rows["2", "dining table"] == [1, pytest.approx(0.1), ["dining table"]]
    assert len(rows) == 5
    assert dataset.concepts == ["dining table", "dog", "person"]


def test_a_box_that_leaves_its_picture_covers_all_of_it_at_most(make: Make) -> None:
    objects = load(make(boxes=[(1, 18, 9999)])).objects
    assert objects is not None
    assert objects["area"].to_list() == [1.0]


def test_the_files_may_lie_in_the_folder_itself_or_be_named(make: Make, tmp_path: Path) -> None:
    folder = make(below=".")
    assert len(load(folder)) == 3
    (folder / "instances_val2017.json").rename(folder / "instances_val2017_mine.json")
    assert len(load(folder)) == 3  # the only one whose name begins so
    (folder / "instances_val2017_mine.json").rename(tmp_path / "boxes.json")
    with pytest.raises(MissingData, match=r"(?s)instances are not at.*--set instances=FILE"):
        load(folder)
    assert len(load(folder, {"instances": str(tmp_path / "boxes.json")})) == 3
    with pytest.raises(MissingData, match=r"--set instances=nowhere.json: nothing is there"):
        load(folder, {"instances": "nowhere.json"})


def test_two_files_that_could_be_meant_are_named(make: Make) -> None:
    folder = make(below=".")
    text = (folder / "instances_val2017.json").read_text()
    (folder / "instances_val2017.json").unlink()
    for name in ("a", "b"):
        (folder / f"instances_val2017_{name}.json").write_text(text)
    with pytest.raises(MissingData, match=r"the folder has: instances_val2017_a.json, instances_val2017_b.json"):
        load(folder)


def test_the_words_that_exclude_are_a_setting(make: Make) -> None:
    assert "4" in load(make(), {"without": ""}).table["image_id"]
    assert load(make(), {"without": "people, dog"}).table["image_id"].to_list() == ["1", "6"]
    with pytest.raises(DataError, match="'two words' is no single word"):
        load(make(), {"without": "two words"})


def test_where_a_word_ends_is_a_setting(make: Make) -> None:
    assert "1" not in load(make(), {"words": "apostrophes"}).table["image_id"]
    with pytest.raises(UnknownName, match="The setting 'words' has no value 'comas'"):
        load(make(), {"words": "comas"})


def test_a_setting_that_does_not_exist_suggests_the_nearest(make: Make) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'instances'"):
        load_dataset("coco", make().parent, {"instance": "x"})
    with pytest.raises(UnknownName, match="'apa' has no setting 'split'"):
        load_dataset("apa", make().parent, {"split": "x"})


def test_concepts_are_kept_by_their_training_frequency(make: Make) -> None:
    folder = make()
    (folder / "annotations" / "instances_val2017.json").rename(folder / "train.json")
    make()
    dataset = load(folder, {"train": "train.json", "concept_images": "3"})
    assert dataset.concepts == ["person"]  # in 1, 3 and 4; dog and dining table are in two images each
    assert any("1 of 3 categories are in at least 3 of the 7 images of train.json" in n for n in dataset.notes)
    with pytest.raises(UsageError, match="a whole number"):
        load(folder, {"train": "train.json", "concept_images": "many"})


def test_concepts_are_counted_in_training_images_that_name_one_group(make: Make) -> None:
    """Images 1, 2, 6 and 7 name one group and not people: a person is in one of them, dogs and tables in two."""
    folder = make()
    place = folder / "annotations"
    for kind in ("instances", "captions"):
        (place / f"{kind}_train2017.json").write_bytes((place / f"{kind}_val2017.json").read_bytes())
    dataset = load(folder, {"concept_images": "2"})
    assert dataset.concepts == ["dining table", "dog"]
    notes = "\n".join(dataset.notes)
    assert "2 of 3 categories are in at least 2 of the 4 images of instances_train2017.json whose captions" in notes
    assert "concepts left out: person (1)" in notes
    assert load(folder, {"concept_images": "3", "concepts_in": "all"}).concepts == ["person"]
    (place / "captions_train2017.json").unlink()
    assert load(folder, {"concept_images": "3"}).concepts == ["person"]
    with pytest.raises(MissingData, match=r"--set train_captions=FILE"):
        load(folder, {"concepts_in": "one-group"})
    with pytest.raises(UnknownName, match="'concepts_in' has no value 'some'"):
        load(folder, {"concepts_in": "some"})


def test_groups_may_be_any_number_and_come_from_a_file(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "company.csv"
    path.write_text("group,word\nanimal,horse\nanimal,dog\nchild,girls\nchild,boys\nadult,he\n")
    dataset = load(make(boxes=[*BOXES, (5, 18, 5), (7, 18, 5)]), {"groups": str(path)})
    found = dict(zip(dataset.table["image_id"], dataset.table["company"], strict=True))
    assert found == {"1": "animal", "2": "animal", "5": "animal", "6": "child", "7": "adult"}
    assert dataset.group_words is not None
    assert tuple(dataset.group_words.words) == ("animal", "child", "adult")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group,word\na,x\nb,x\n", "'x' stands for a and for b"),
        ("group,word\na,x\n", "at least two groups"),
        ("group,word\na,x\nb,\n", "row 3 has no word"),
        ("name,word\na,x\n", "the column 'group' is missing"),
    ],
)
def test_groups_that_cannot_be_told_apart_are_refused(text: str, message: str, make: Make, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        load(make(), {"groups": str(path)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"boxes": [(99, 1, 1)]}, "1 image numbers of its annotations are not listed in it, such as 99"),
        ({"boxes": [(1, 5, 1)]}, "1 category numbers of its annotations are not listed"),
        ({"boxes": [(1, 1, "high")]}, r"byte \d+: annotations record 1 has bbox"),
        ({"boxes": [("1", 1, 1)]}, r"byte \d+: annotations record 1 has image_id '1', not a whole number"),
        ({"categories": []}, "holds no 'categories'"),
        ({"images": [{"id": 1}]}, r"byte \d+: images record 1 has no 'width'"),
        ({"boxes": [(5, 1, 1)]}, "(?s)No image is left.*step 2"),
        ({"boxes": [(1, 1, -4)]}, r"byte \d+: annotations record 1 has bbox"),
        ({"boxes": [(1, 1, float("nan"))]}, r"byte \d+: annotations record 1 has bbox"),
        ({"boxes": [(1, 1, True)]}, r"byte \d+: annotations record 1 has bbox"),
        ({"boxes": [(2**70, 1, 1)]}, r"byte \d+: annotations record 1 has image_id"),
        ({"categories": [CATEGORIES[0]] * 2}, "categories record 2 has the id 1, which another had before it"),
        ({"categories": [{"id": 1}]}, "categories record 1 has no 'name'"),
        ({"categories": [{"id": 1, "name": " "}]}, "categories record 1 has name ' ', not a name"),
        ({"images": [IMAGE, IMAGE]}, "images record 2 has the id 1, which another had before it"),
        ({"images": [{**IMAGE, "width": 0}]}, "images record 1 has the size 0 × 5"),
    ],
)
def test_faulty_boxes_are_told_with_their_place(change: dict[str, Any], message: str, make: Make) -> None:
    with pytest.raises(DataError, match=message):
        load(make(**change))


def test_an_image_outside_the_folder_is_refused(make: Make) -> None:
    images = [{"id": n, "file_name": "../../secret.jpg", "width": 1, "height": 1} for n in CAPTIONS]
    with pytest.raises(DataError, match="outside the folder"):
        load(make(images=images))


def test_the_revision_changes_with_files_and_settings(make: Make) -> None:
    first, same, other = load(make()), load(make()), load(make(), {"without": ""})
    changed = load(make(boxes=BOXES[1:]))
    assert first.revision == same.revision
    assert len({first.revision, other.revision, changed.revision}) == 3


def test_the_revision_follows_a_file_of_groups_and_not_its_name(make: Make, tmp_path: Path) -> None:
    revisions = []
    for name, word in (("one", "horse"), ("two", "horse"), ("two", "dog")):
        (tmp_path / name).mkdir(exist_ok=True)
        path = tmp_path / name / "who.csv"
        path.write_text(f"group,word\nanimal,{word}\nchild,girls\n")
        revisions.append(load(make(), {"groups": str(path)}).revision)
    assert revisions[0] == revisions[1] != revisions[2]


# The real captions


def slow_count(captions: Path, without: set[str]) -> int:
    """The rule written out with other means: one pattern a word, over the captions joined."""
    texts: dict[int, str] = defaultdict(str)
    for entry in json.loads(captions.read_text())["annotations"]:
        texts[entry["image_id"]] += " | " + entry["caption"].lower()

    def says(text: str, word: str) -> bool:
        return re.search(rf"\b{word}\b", text) is not None

    women, men = GENDER_WORDS.words["woman"], GENDER_WORDS.words["man"]
    return sum(
        any(says(text, word) for word in women) != any(says(text, word) for word in men)
        and not any(says(text, word) for word in without)
        for text in texts.values()
    )


@pytest.mark.real
@pytest.mark.parametrize(("without", "count"), [("", 1733), ("people", 1418), ("person,people", 1010)])
def test_the_steps_of_the_protocol_come_out_on_the_real_captions(data: Path, without: str, count: int) -> None:
    dataset = load(data / "coco", {"without": without})
    assert steps(dataset)[:2] == [5000, 1733]
    assert steps(dataset)[1 if not without else 2] == count
    assert slow_count(data / "coco" / "captions_val2017.json", set(without.split(",")) - {""}) == count


@pytest.mark.real
@pytest.mark.parametrize("words", ["blanks", "apostrophes"])
def test_two_other_ways_to_cut_words_give_the_papers_count(data: Path, words: str) -> None:
    assert steps(load(data / "coco", {"words": words}))[2] == 1412


@pytest.mark.real
def test_the_images_at_hand_are_told_from_those_that_are_not(data: Path) -> None:
    whole = load(data / "coco")
    here = whole.present()
    assert (len(whole), len(here)) == (910, 157)
    assert here.notes[-2:] == ("753 of 910 images are missing and left out", "gender: man 86, woman 71")
    assert here.objects is not None
    assert here.objects["image_id"].n_unique() == 157


@pytest.mark.real
def test_original_annotations_with_outlines_are_read_too(data: Path) -> None:
    path = data / "coco" / "mini_annotations" / "instances_val2017.json"
    dataset = load(data / "coco", {"instances": str(path), "without": ""})
    raw = json.loads(path.read_text())
    names = {category["id"]: category["name"] for category in raw["categories"]}
    expected = {(str(a["image_id"]), names[a["category_id"]]) for a in raw["annotations"]}
    assert dataset.objects is not None
    assert set(dataset.objects.select("image_id", "concept").iter_rows()) <= expected
    assert dataset.objects["area"].is_between(0, 1).all()
    ids = pl.Series([str(image["id"]) for image in raw["images"]])
    assert dataset.table["image_id"].is_in(ids.to_list()).all()
