"""Predictions made elsewhere: streamed, checked to the byte, and laid over the pictures and concepts asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import BadScores, UsageError
from beholder.models.load import load_model
from beholder.models.predictions import ScoreFile, import_predictions, is_predictions, mask_share, run_lengths

CATEGORIES = [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}, {"id": 67, "name": "dining_table"}]
IMAGES = ["139", "285", "632"]
CONCEPTS = ["dog", "Dining table", "unicorn"]
BOX = [0.0, 0.0, 10.0, 5.5]
Write = Callable[..., Path]


def box(image: int | str, category: int, score: float, **more: Any) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": BOX, "score": score} | more


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a results file with its labels."""

    def make(results: Any, **labels: Any) -> Path:
        path = tmp_path / "results.json"
        path.write_text(results if isinstance(results, str) else json.dumps(results), encoding="utf-8")
        (tmp_path / "labels.json").write_text(json.dumps({"categories": CATEGORIES} | labels))
        return path

    return make


def read(path: Path, **options: Any) -> ScoreFile:
    return import_predictions(path, IMAGES, CONCEPTS, **options)


def test_a_concepts_score_is_its_best_box_and_0_where_none_was_found(write: Write) -> None:
    found = read(write([box(139, 18, 0.4), box(139, 18, 0.9), box(139, 18, 0.2), box("000000000285", 67, 1)]))
    assert (found.image_ids, found.prompt_ids) == (IMAGES, CONCEPTS)
    np.testing.assert_array_equal(found.cells, [[0.9, 0, np.nan], [0, 1, np.nan], [0, 0, np.nan]])


def test_boxes_that_score_too_little_are_dropped(write: Write) -> None:
    path = write([box(139, 18, 0.09), box(285, 18, 0.1)])
    assert read(path).cells[:, 0].tolist() == [0, 0.1, 0]
    assert read(path, minimum=0).cells[:, 0].tolist() == [0.09, 0.1, 0]


def test_concepts_may_be_prompt_ids_with_their_names(write: Write) -> None:
    found = import_predictions(write([box(139, 18, 0.5)]), ["139"], {"a photo of a dog": "dog"})
    assert found.prompt_ids == ["a photo of a dog"]
    assert found.cells.tolist() == [[0.5]]


def test_images_that_were_never_looked_at_are_absent_if_the_labels_say_so(write: Write) -> None:
    found = read(write([box(139, 18, 0.5)], images=[{"id": 139}, {"id": 632}]))
    np.testing.assert_array_equal(found.cells[:, 0], [0.5, np.nan, 0])
    assert "1 of 3 images were not processed" in found.notes[0]


def test_images_without_a_record_are_counted_when_nothing_says_that_they_were_looked_at(write: Write) -> None:
    notes = read(write([box(139, 18, 0.5), box(777, 18, 0.5)])).notes
    assert notes[0] == "1 records are about other images, such as 777"
    assert notes[1].startswith("2 of 3 images have no record")
    assert notes[2] == "1 of 3 categories are not among the requested concepts"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (box(139, 18, 1.2), "score 1.2, not a number from 0 to 1"),
        (box(139, 18, float("nan")), "score nan"),
        (box(139, 18, True), "score True"),
        (box(139, 18, "0.5"), "score '0.5'"),  # type: ignore[arg-type]
        (box(139, 5, 0.5), r"category_id 5, which .*labels.json does not name \(it has 1, 18, 67"),
        (box(139, [1], 0.5), r"category_id \[1\]"),  # type: ignore[arg-type]
        (box(777, 18, 0.5), "about image 777, which .* does not list"),
        (box(139, 18, 0.5, bbox=[1, 2, 3]), r"bbox \[1, 2, 3\]"),
        (box(139, 18, 0.5, bbox=[1, 2, -3, 4]), "not .x, y, width, height."),
        ({"category_id": 18, "score": 0.5}, "no 'image_id'"),
        ({"image_id": 139, "category_id": 18, "bbox": BOX}, "a score where others have none"),
    ],
)
def test_a_wrong_record_is_refused_with_its_place(write: Write, record: Any, reason: str) -> None:
    good = box(139, 18, 0.5)
    path = write([good, record], images=[{"id": 139}])
    with pytest.raises(
        BadScores,
        match=rf"byte {len(json.dumps([good])) + 1}: record 2 has .*{reason}|"
        rf"byte {len(json.dumps([good])) + 1}: record 2 is .*{reason}",
    ):
        read(path)


def test_a_file_about_other_images_says_which(write: Write) -> None:
    with pytest.raises(BadScores, match=r"none of the requested images \(such as 139.*such as 777"):
        read(write([box(777, 18, 0.5)]))
    with pytest.raises(BadScores, match="holds no record"):
        read(write([]))


def test_labels_that_name_no_concept_are_told(write: Write) -> None:
    path = write([box(139, 18, 0.5)])
    with pytest.raises(BadScores, match=r"none of the concepts asked for.\nAsked for: cat .*\nIt has: person, dog"):
        import_predictions(path, IMAGES, ["cat"])


def test_missing_labels_say_what_to_write(write: Write, tmp_path: Path) -> None:
    path = write([box(139, 18, 0.5)])
    (tmp_path / "labels.json").unlink()
    with pytest.raises(BadScores, match=r'(?s)results.labels.json or .*"categories": \[\{"id": 1, "name": "person"\}'):
        read(path)


@pytest.mark.parametrize("labels", [["other", "dog"], {"1": "dog", "0": "other"}])
def test_labels_may_be_a_plain_list_or_map(labels: Any, write: Write, tmp_path: Path) -> None:
    path = write([box(139, 1, 0.5)])
    (tmp_path / "results.labels.json").write_text(json.dumps(labels))
    assert read(path).cells[0, 0] == 0.5


@pytest.mark.parametrize(
    "labels", [7, [{"id": 1}], {"one": "dog"}, {"categories": CATEGORIES, "images": [139]}, {"categories": None}]
)
def test_labels_that_are_none_are_refused(labels: Any, write: Write, tmp_path: Path) -> None:
    path = write([box(139, 18, 0.5)])
    (tmp_path / "labels.json").write_text(json.dumps(labels))
    with pytest.raises(BadScores, match=r"labels.json does not list categories"):
        read(path)


def test_a_number_that_names_two_categories_is_refused(write: Write) -> None:
    with pytest.raises(BadScores, match="more than once"):
        read(write([], categories=[*CATEGORIES, {"id": 18, "name": "cat"}]))


def test_images_that_predictions_cannot_tell_apart_are_refused(write: Write) -> None:
    with pytest.raises(BadScores, match="have one name"):
        import_predictions(write([box(139, 18, 0.5)]), ["139", "0139"], CONCEPTS)


# The stream


PEAK = """
import sys
from pathlib import Path
from beholder.models.predictions import import_predictions
found = import_predictions(Path(sys.argv[1]), [str(n) for n in range(1000)], ["dog", "person"])
assert found.cells.max() > 0.9
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])  # of this program, not of what started it
"""


@pytest.mark.slow
def test_a_hundred_megabytes_cost_no_more_memory_than_a_few_kilobytes(write: Write, tmp_path: Path) -> None:
    small = write([box(n, 18, 0.95) for n in range(50)])
    before = peak(small)
    mask = {"size": [480, 640], "counts": "0" * 40}
    with small.open("w") as file:
        file.write("[")
        for n in range(480_000):
            record = box(n % 1000, 18 if n % 3 else 1, (n % 99) / 100, segmentation=mask)
            file.write(("," if n else "") + json.dumps(record))
        file.write("]")
    assert small.stat().st_size > 80e6
    assert peak(small) - before < 50_000  # KiB


def peak(path: Path) -> int:
    """The most memory that reading the file takes, in KiB."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], check=True, capture_output=True, text=True)
    return int(done.stdout)


# Masks


def compressed(counts: list[int]) -> str:
    """COCO's text of run lengths, written down from its description."""
    text = ""
    for place, count in enumerate(counts):
        value = count - counts[place - 2] if place > 2 else count
        while True:
            bits, value = value & 0x1F, value >> 5
            done = value == (-1 if bits & 0x10 else 0)
            text += chr(48 + (bits if done else bits | 0x20))
            if done:
                break
    return text


PYCOCOTOOLS = [  # size, counts and area of five masks, as pycocotools 2.0.11 encodes them
    ([1, 1], "01", 1),
    ([7, 5], "S1", 0),
    ([7, 5], "0S1", 35),
    ([9, 13], "01200000O0110O00320NL0132M20M0N000100020M021O00O110O10M13O2", 39),
    ([480, 640], "]^Z4g1o<d0@<F8J4N0002L6H:D`0\\Om\\l4", 921),
]


@pytest.mark.parametrize(("size", "counts", "area"), PYCOCOTOOLS)
def test_compressed_masks_are_read_as_pycocotools_reads_them(size: list[int], counts: str, area: int) -> None:
    assert mask_share({"size": size, "counts": counts}) == area / (size[0] * size[1])


def masks() -> Iterator[tuple[Any, list[int]]]:
    rng = np.random.default_rng(11)
    for height, width, density in [(1, 1, 0.5), (7, 5, 0.0), (7, 5, 1.0), (48, 64, 0.02), (480, 640, 0.5)]:
        mask = rng.random((height, width)) < density
        column_wise = np.concatenate([[False], mask.ravel(order="F"), [not mask[-1, -1]]])
        edges = np.flatnonzero(np.diff(column_wise))
        yield mask, np.diff(np.concatenate([[0], edges])).tolist()


def test_run_lengths_are_read_as_they_were_written() -> None:
    for mask, counts in masks():
        size = list(mask.shape)
        assert run_lengths(compressed(counts)) == counts
        assert mask_share({"size": size, "counts": counts}) == pytest.approx(mask.mean())
        assert mask_share({"size": size, "counts": compressed(counts)}) == pytest.approx(mask.mean())


@pytest.mark.parametrize(
    ("segmentation", "reason"),
    [
        ({"size": [2, 3], "counts": [1, 3]}, "mask of 4 pixels for a picture of 2 × 3"),
        ({"size": [2, 3], "counts": [1, -3, 8]}, "no whole numbers"),
        ({"size": [2, 3], "counts": "0~"}, "'~' in them"),
        ({"size": [2, 3], "counts": "0P"}, "break off"),
        ({"size": [0, 3], "counts": []}, "mask of size"),
        ([[0, 0, 1, 1, 2, 2]], "not run lengths"),
        (None, "not run lengths"),
    ],
)
def test_what_is_no_mask_is_refused(segmentation: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        mask_share(segmentation)


def test_masks_without_a_score_count_by_the_pixels_they_cover(write: Write) -> None:
    def mask(image: int, counts: Any) -> dict[str, Any]:
        return {"image_id": image, "category_id": 18, "segmentation": {"size": [2, 5], "counts": counts}}

    path = write([mask(139, [0, 2, 8]), mask(139, [5, 3, 2]), mask(285, compressed([9, 1]))])
    assert read(path).cells[:, 0].tolist() == pytest.approx([0.5, 0.1, 0])
    with pytest.raises(BadScores, match="record 2 overlaps another mask"):
        read(write([mask(139, [0, 8, 2]), mask(139, [0, 8, 2])]))


def test_masks_with_a_score_count_by_the_score(write: Write) -> None:
    mask = {"size": [2, 5], "counts": [0, 10]}
    assert read(write([box(139, 18, 0.3, segmentation=mask)])).cells[0, 0] == 0.3


# Class maps


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    """Two maps of 4 × 5 pixels: a dog in 3 of 20, a table in 5 of 20; the third picture has none."""
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "labels.json").write_text(json.dumps({"categories": CATEGORIES, "ignore": [255]}))
    pixels = np.full((4, 5), 255, np.uint8)
    pixels[0, :3] = 18
    palette = Image.fromarray(pixels, mode=None).convert("L")
    palette.putpalette([value for number in range(256) for value in (number, 255 - number, 7)])
    palette.save(folder / "000000000139.png")
    pixels = np.full((4, 5), 1, np.int32)
    pixels[1] = 67
    Image.fromarray(pixels.astype(np.uint16)).save(folder / "285.png")
    return folder


def test_a_class_map_counts_by_its_pixels(maps: Path) -> None:
    found = read(maps)
    expected = [[3 / 20, 0, np.nan], [0, 5 / 20, np.nan], [np.nan] * 3]
    np.testing.assert_allclose(found.cells, expected)
    assert found.notes[0] == "1 of 3 images have no map"
    Image.new("L", (2, 2)).save(maps / "777.png")
    assert read(maps).notes[1] == "1 maps are of other images"


def test_predictions_say_whether_they_are_scores_or_areas(write: Write, maps: Path) -> None:
    assert read(write([box(139, 18, 0.5)])).channel == "presence"
    assert read(maps).channel == "area"  # a share of pixels is no probability


def test_a_class_map_may_be_in_colour_where_the_labels_say_which(maps: Path) -> None:
    coloured = [{"id": 18, "name": "dog", "color": [255, 0, 0]}, {"id": 1, "name": "person", "color": [0, 9, 0]}]
    (maps / "285.png").unlink()
    picture = np.zeros((2, 4, 3), np.uint8)
    picture[..., 1] = 9
    picture[0, 0] = (255, 0, 0)
    Image.fromarray(picture).save(maps / "139.png")
    (maps / "000000000139.png").unlink()
    with pytest.raises(BadScores, match="mode RGB"):
        read(maps)
    (maps / "labels.json").write_text(json.dumps({"categories": coloured}))
    assert read(maps).cells[0, 0] == 1 / 8
    picture[1, 1] = (1, 2, 3)
    Image.fromarray(picture).save(maps / "139.png")
    with pytest.raises(BadScores, match="#010203"):
        read(maps)


def test_a_number_without_a_name_is_refused_with_its_file(maps: Path) -> None:
    (maps / "labels.json").write_text(json.dumps({"categories": CATEGORIES}))
    with pytest.raises(BadScores, match=r'000000000139.png shows category 255.*\n.*"ignore": \[255\]'):
        read(maps)


def test_a_damaged_map_costs_its_picture_only(maps: Path) -> None:
    whole = (maps / "285.png").read_bytes()
    (maps / "285.png").write_bytes(whole[: len(whole) // 2])
    found = read(maps)
    assert found.cells[0, 0] == 3 / 20
    assert np.isnan(found.cells[1]).all()
    assert any(note.startswith("1 maps cannot be read, such as") for note in found.notes)


def test_maps_of_other_pictures_are_told(maps: Path) -> None:
    with pytest.raises(BadScores, match="no map of the requested images"):
        import_predictions(maps, ["1", "2"], CONCEPTS)


# The ways in


def test_a_folder_may_hold_one_results_file(write: Write, tmp_path: Path) -> None:
    path = write([box(139, 18, 0.5)])
    assert read(tmp_path).cells[0, 0] == 0.5
    path.with_name("second.json").write_text("[]")
    with pytest.raises(BadScores, match="2 of the latter"):
        read(tmp_path)


def test_predictions_are_told_from_score_tables_by_their_path(tmp_path: Path) -> None:
    assert is_predictions(tmp_path)
    assert is_predictions(tmp_path / "detic.json")
    assert not is_predictions(tmp_path / "scores.parquet")
    with pytest.raises(BadScores, match="no predictions at"):
        read(tmp_path / "nowhere.json")


def test_predictions_stand_in_the_place_of_a_score_table(write: Write) -> None:

    found = read(write([box(139, 18, 0.5)]))
    file = ScoreFile(*found[:4])
    assert (file.image_ids, file.prompt_ids, file.task) == (IMAGES, CONCEPTS, None)
    assert file.cells[0, 0] == 0.5


@pytest.mark.real
def test_the_real_boxes_of_coco_give_the_concepts_that_stand_in_its_table(data: Path, tmp_path: Path) -> None:
    source = json.loads((data / "coco" / "instances_val2017_from_yolo_boxes_3200.json").read_text())
    results = [box(item["image_id"], item["category_id"], 1.0) for item in source["annotations"]]
    (tmp_path / "results.json").write_text(json.dumps(results))
    labels = {"categories": source["categories"], "images": source["images"]}
    (tmp_path / "labels.json").write_text(json.dumps(labels))
    images = [str(image["id"]) for image in source["images"]]
    names = {category["id"]: category["name"] for category in source["categories"]}
    found = import_predictions(tmp_path, images, list(names.values()))
    there = {(images[row], found.prompt_ids[column]) for row, column in np.argwhere(found.cells == 1)}
    assert there == {(str(item["image_id"]), names[item["category_id"]]) for item in source["annotations"]}
    assert np.isin(found.cells, [0, 1]).all()


def test_predictions_named_as_a_model_say_how_to_measure_them() -> None:
    with pytest.raises(UsageError, match=r"beholder measure STUDY --scores runs/detic.json"):
        load_model("predictions:runs/detic.json")


def probability_maps(folder: Path, **maps: Any) -> Path:
    """A folder of probability maps for three labels."""
    folder.mkdir()
    (folder / "labels.json").write_text(json.dumps(["other", "dog", "dining table"]))
    for name, planes in maps.items():
        np.savez_compressed(folder / f"{name.removeprefix('_')}.npz", np.asarray(planes, np.float16))
    return folder


def test_probability_maps_give_the_likeliest_pixel(tmp_path: Path) -> None:
    planes = np.zeros((3, 2, 2))
    planes[:, 0, 0] = 0.25, 0.5, 0.25
    planes[:, 1, 1] = 0.125, 0.0, 0.875
    found = read(probability_maps(tmp_path / "maps", _139=planes, _285=np.zeros((3, 4, 5))))
    assert found.channel == "presence", "a probability: calibration is measured"
    np.testing.assert_array_equal(found.cells, [[0.5, 0.875, np.nan], [0, 0, np.nan], [np.nan] * 3])
    assert found.notes[0] == "1 of 3 images have no map"


@pytest.mark.parametrize(
    ("planes", "told"),
    [(np.zeros((2, 4, 4)), "the 3 categories"), (np.full((3, 1, 1), 1.5), "no probabilities"), (np.zeros(3), "shape")],
)
def test_probability_maps_that_are_none_are_refused(planes: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(BadScores, match=told):
        read(probability_maps(tmp_path / "maps", _139=planes))


def test_maps_of_two_kinds_are_not_mixed(tmp_path: Path) -> None:
    folder = probability_maps(tmp_path / "maps", _139=np.zeros((3, 2, 2)))
    (folder / "285.npz").write_bytes(b"broken")
    assert any(note.startswith("1 maps cannot be read") for note in read(folder).notes)
    Image.new("L", (2, 2)).save(folder / "632.png")
    with pytest.raises(BadScores, match="Keep one kind"):
        read(folder)
