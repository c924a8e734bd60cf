"""Visual Genome: objects in a stream, one group by synsets, names of one meaning, concepts frequent in every group."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beholder.core.errors import DataError, MissingData
from beholder.datasets import load_dataset
from beholder.datasets.visual_genome import GENDER_TERMS, load, read_aliases

Make = Callable[..., Path]


def thing(synsets: list[str] | str, *names: str, w: int = 10, h: int = 10) -> dict[str, Any]:
    return {
        "synsets": [synsets] if isinstance(synsets, str) else synsets,
        "names": list(names) or ["it"],
        "x": 0,
        "y": 0,
        "w": w,
        "h": h,
        "object_id": 1,
        "merged_object_ids": [],
    }


MAN, WOMAN, PERSON = thing("man.n.01", "man"), thing("bride.n.01", "bride"), thing("person.n.01", "person")
TIE = thing("tie.n.01", "Neck  Ties", w=20, h=30)
HALTER = thing("tie.n.01", "halter strap", w=5, h=5)
CUP = thing(["cup.n.01", "mug.n.04"], "cup")
IMAGES = {
    1: [MAN, TIE, HALTER, CUP],
    2: [WOMAN, TIE],
    3: [MAN, WOMAN, TIE],
    4: [MAN, PERSON, TIE],
    5: [TIE, CUP],
    6: [WOMAN, thing([], "street light"), CUP],
    7: [MAN, thing([], "street light")],
}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a small Visual Genome; images have 1,000 pixels."""

    def write(images: Any = IMAGES, *, sizes: bool = True, aliases: str | None = None) -> Path:
        folder = tmp_path / "vg"
        folder.mkdir(exist_ok=True)
        records = [{"image_id": n, "objects": objects, "image_url": ""} for n, objects in images.items()]
        (folder / "objects.json").write_text(json.dumps(records))
        if sizes:
            data = [{"image_id": n, "width": 50, "height": 20} for n in images]
            (folder / "image_data.json").write_text(json.dumps(data))
        if aliases is not None:
            (folder / "object_alias.txt").write_text(aliases)
        return folder

    return write


FEW = {"group_images": "1"}


def test_images_with_people_of_one_group_are_kept(make: Make) -> None:
    dataset = load(make(), FEW)
    found = dict(zip(dataset.table["image_id"], dataset.table["gender"], strict=True))
    assert found == {"1": "man", "2": "woman", "6": "woman"}
    steps = [note for note in dataset.notes if note.startswith("step")]
    assert [note.rsplit(": ", 1)[1] for note in steps] == ["7 images", "5 images", "4 images", "3 images"]
    assert dataset.source_ids == frozenset("1234567")


def test_objects_carry_count_largest_area_and_all_names(make: Make) -> None:
    dataset = load(make(aliases="neck tie,neck ties,tie of neck\n"), FEW)
    assert dataset.objects is not None
    rows = {(image, concept): rest for image, concept, *rest in dataset.objects.iter_rows()}
    assert rows["1", "tie.n.01"] == [2, pytest.approx(0.6), ["neck tie", "halter strap"]]
    assert rows["1", "mug.n.04"] == rows["1", "cup.n.01"] == [1, pytest.approx(0.1), ["cup"]]


def test_concepts_must_be_in_enough_images_of_every_group(make: Make) -> None:
    assert load(make(), FEW).concepts == ["cup.n.01", "mug.n.04", "tie.n.01"]  # no man.n.01: in no image of women
    images = {**IMAGES, 8: [WOMAN, TIE], 9: [MAN, TIE]}
    dataset = load(make(images), {"group_images": "2"})
    assert dataset.concepts == ["tie.n.01"]
    assert len(dataset) == 4
    with pytest.raises(DataError, match=r"(?s)No concept.*step 2.*group_images=N below 50"):
        load(make())


def test_what_leaves_an_image_out_may_be_a_synset_or_a_name(make: Make) -> None:
    assert "4" in load(make(), FEW | {"without": ""}).table["image_id"]
    assert load(make(), FEW | {"without": "street light"}).table["image_id"].to_list() == ["1", "2", "4"]


def test_areas_are_absent_where_sizes_are(make: Make) -> None:
    dataset = load(make(sizes=False), FEW)
    assert dataset.objects is not None
    assert dataset.objects["area"].null_count() == dataset.objects.height
    assert "image_data.json is not here: areas of objects are unknown" in dataset.notes


def test_own_groups_may_be_more_than_two(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "who.csv"
    path.write_text("group,word\nman,man.n.01\nbride,bride.n.01\nlight,street light\n")
    images = {1: [MAN, TIE], 2: [WOMAN, TIE], 3: [thing([], "street light"), TIE]}
    dataset = load(make(images), FEW | {"groups": str(path)})
    assert dataset.table["who"].to_list() == ["man", "bride", "light"]


def test_images_are_found_in_either_folder(make: Make) -> None:
    folder = make()
    for place, name in (("VG_100K", "1.jpg"), ("VG_100K_2", "2.jpg")):
        (folder / place).mkdir()
        (folder / place / name).touch()
    dataset = load_dataset("visual-genome", folder.parent, FEW)
    assert dataset.present().table["image_id"].to_list() == ["1", "2"]
    assert dataset.table["uri"][1].endswith("VG_100K_2/2.jpg")


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ({1: [MAN], 2: "none"}, r"byte \d+: record 2 has no list of 'objects'"),
        ({1: [{"names": ["man"], "w": 1, "h": 1}]}, "record 1 has an object without synsets, names, w or h"),
        ({1: [thing("man.n.01", w="wide")]}, "record 1 has an object without synsets"),
        ({1: [7]}, "record 1 has an object without synsets"),
        ({1: [{**MAN, "synsets": "man.n.01"}]}, "'man.n.01' is no list"),
        ({1: [{**MAN, "synsets": [7]}]}, "7\\] is no list of words"),
        ({1: [{**MAN, "h": float("nan")}]}, "nan is no side of a box"),
        ({1: [{**MAN, "h": -3}]}, "-3 is no side of a box"),
    ],
)
def test_faulty_records_are_told_with_their_place(objects: Any, message: str, make: Make) -> None:
    with pytest.raises(DataError, match=message):
        load(make(objects), FEW)


def test_a_truncated_file_is_told_by_its_last_byte(make: Make) -> None:
    path = make() / "objects.json"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=rf"cut off: it ends at byte {path.stat().st_size}"):
        load(path.parent, FEW)


def test_missing_objects_are_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"(?s)objects are not at.*objects.json.*--set objects=FILE"):
        load(tmp_path)
    with pytest.raises(MissingData, match=r"'visual-genome' is not at .*vg\."):
        load_dataset("visual-genome", tmp_path)


def test_a_name_that_begins_a_line_stands_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "object_alias.txt"
    path.write_text("bike,bikes,Bikes are\nbicycle,bike,bicycles\n\n")
    assert read_aliases(path) == {"bikes": "bike", "bikes are": "bike", "bicycles": "bicycle"}


def test_no_term_stands_for_both_genders() -> None:
    assert len(GENDER_TERMS.words["man"]) == 15
    assert len(GENDER_TERMS.words["woman"]) == 25
    assert not set(GENDER_TERMS.words["man"]) & set(GENDER_TERMS.words["woman"])


@pytest.mark.real
def test_the_true_schema_and_alias_table_are_read(data: Path, tmp_path: Path) -> None:
    sample = data / "vg" / "objects.images1-2.sample.json"
    groups = tmp_path / "place.csv"
    groups.write_text("group,word\none,shade.n.01\ntwo,crossing.n.05\n")
    settings = {"objects": str(sample), "groups": str(groups), "group_images": "1", "without": ""}
    dataset = load(data / "vg", settings)
    raw = {str(record["image_id"]): record["objects"] for record in json.loads(sample.read_text())}
    assert dataset.objects is not None
    for image, concept, count, _, names in dataset.objects.iter_rows():
        same = [thing for thing in raw[image] if concept in thing["synsets"]]
        assert count == len(same)
        assert len(names) <= len({name for thing in same for name in thing["names"]})
    assert dataset.table["place"].to_list() == ["one", "two"]
    aliases = read_aliases(data / "vg" / "object_alias.txt")
    assert aliases["railings"] == "railing"
    assert len(aliases) > 2000


PEAK = """
import sys
from pathlib import Path
from beholder.datasets.visual_genome import load
dataset = load(Path(sys.argv[1]))
peak = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]  # of this program, not of what started it
print(len(dataset.source_ids), len(dataset), len(dataset.concepts), peak)
"""


@pytest.mark.slow
def test_a_third_of_visual_genome_fits_into_half_a_gigabyte(tmp_path: Path) -> None:
    rng = random.Random(2)
    pool = [json.dumps(thing(f"thing_{i}.n.01", f"thing {i}")) for i in range(3000)]
    people = [json.dumps(MAN), json.dumps(WOMAN)]
    with (tmp_path / "objects.json").open("w") as file:
        file.write("[")
        for n in range(36_000):
            objects = [people[n % 2], *rng.choices(pool[: 1 + n % 3000], k=14)]
            file.write(f'{"," if n else ""}{{"image_id": {n}, "objects": [{",".join(objects)}]}}')
        file.write("]")
    done = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path)], check=True, capture_output=True, text=True)
    images, kept, concepts, peak = map(int, done.stdout.split())
    assert (images, kept) == (36_000, 36_000)
    assert concepts > 500
    assert peak < 500_000  # KiB
