"""The same people as files, Parquet, Arrow and tars, here and behind URIs: same pictures, digests and labels."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beholder.core.digests import NOT_HASHED
from beholder.core.errors import BadImage, DataError, MissingData, UnknownName
from beholder.datasets import load_dataset
from beholder.datasets.content import part_of
from beholder.datasets.dataset import Dataset, ImageDigests
from beholder.datasets.images import open_image

fsspec = pytest.importorskip("fsspec")
FEATURES = {
    "image": {"_type": "Image"},
    "Gender": {"_type": "ClassLabel", "names": ["man", "woman"]},
    "boxes": {"_type": "Sequence"},
}


def hf_table(folder: Path, rows: slice) -> pa.Table:
    """The people of a folder as `datasets` lays them out."""
    people = pl.read_csv(folder / "people.csv")[rows]
    images = [{"bytes": (folder / name).read_bytes(), "path": name} for name in people["image"]]
    columns = {
        "image": pa.array(images, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        "name": people["name"].to_list(),
        "Gender": [int(each == "woman") for each in people["gender"]],
        "boxes": [[1, 2]] * people.height,
    }
    info = {"info": {"features": FEATURES}}
    return pa.table(columns).replace_schema_metadata({"huggingface": json.dumps(info)})


def tar_of(folder: Path, rows: slice) -> bytes:
    """The people of a folder as a webdataset tar."""
    people, buffer = pl.read_csv(folder / "people.csv")[rows], io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for image, name, gender in people.rows():
            labels = json.dumps({"name": name, "Gender": gender, "boxes": [1]}).encode()
            for ending, data in {"json": labels, "png": (folder / image).read_bytes()}.items():
                member = tarfile.TarInfo(f"faces/{Path(image).stem}.{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def layouts(people: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Eight people in every layout that is read."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = people(8)
    parquet, arrow, tars = (tmp_path / name for name in ("parquet", "arrow/train", "tars"))
    for made in (parquet, arrow, tars):
        made.mkdir(parents=True)
    memory = fsspec.filesystem("memory")
    for shard, rows in enumerate((slice(0, 5), slice(5, 8))):
        name = f"train-{shard:05}-of-00002.parquet"
        pq.write_table(hf_table(folder, rows), parquet / name, row_group_size=2)
        with pa.OSFile(str(arrow / f"data-{shard:05}-of-00002.arrow"), "wb") as file:
            table = hf_table(folder, rows)
            form = pa.ipc.new_file if shard else pa.ipc.new_stream  # `datasets` writes streams, others files
            with form(file, table.schema) as writer:
                writer.write_table(table, max_chunksize=2)
        (tars / f"s-{shard:02}.tar").write_bytes(tar_of(folder, rows))
        memory.pipe(f"/{tmp_path.name}/parquet/{name}", (parquet / name).read_bytes())
        memory.pipe(f"/{tmp_path.name}/s-{shard:02}.tar", tar_of(folder, rows))
    for path in folder.iterdir():
        memory.pipe(f"/{tmp_path.name}/people/{path.name}", path.read_bytes())
    remote = f"memory://{tmp_path.name}"
    return {
        "folder": f"folder:{folder}",
        "file": f"folder:file://{folder}",
        "parquet": f"hf:{parquet}",
        "arrow": f"hf:{arrow.parent}",
        "wds": f"wds:{tars}",
        "wds range": f"wds:{tars}/s-{{00..01}}.tar",
        "folder behind a URI": f"folder:{remote}/people",
        "parquet behind a URI": f"hf:{remote}/parquet",
        "wds behind a URI": f"wds:{remote}/s-{{00..01}}.tar",
    }


def contents(dataset: Dataset, memory: Path) -> list[tuple[str, str, bytes, str]]:
    uris = dataset.table["uri"].to_list()
    digests = ImageDigests(memory).of(uris)
    pixels = [open_image(pickle.loads(pickle.dumps(uri))).tobytes() for uri in uris]
    return list(zip(dataset.attribute("name"), dataset.attribute("gender"), pixels, digests, strict=True))


def test_every_layout_gives_the_same_pictures_digests_and_labels(layouts: dict[str, str], tmp_path: Path):
    expected = contents(load_dataset(layouts["folder"]), tmp_path / "memory")
    assert len({digest for *_, digest in expected}) == 8
    for layout, name in layouts.items():
        dataset = load_dataset(name)
        assert contents(dataset, tmp_path / layout / "memory") == expected, layout
        assert len(dataset.present()) == 8
        assert dataset.revision == load_dataset(name).revision


def test_pictures_are_not_read_before_they_are_needed_and_are_remembered(layouts: dict[str, str], tmp_path: Path):
    for layout in ("parquet", "wds", "wds behind a URI"):
        uris = load_dataset(layouts[layout]).table["uri"].to_list()
        memory = tmp_path / layout / "memory"
        assert ImageDigests(memory).remembered(uris) == [NOT_HASHED] * 8
        known = ImageDigests(memory).of(uris)
        assert ImageDigests(memory).remembered(uris) == known


def test_a_changed_shard_is_hashed_again(layouts: dict[str, str], tmp_path: Path):
    uris = load_dataset(layouts["wds"]).table["uri"].to_list()
    before = ImageDigests(tmp_path / "memory").of(uris)
    tar = Path(part_of(uris[0]).container)
    os.utime(tar, ns=(1, 1))
    assert ImageDigests(tmp_path / "memory").remembered(uris) == [NOT_HASHED] * 5 + before[5:]


def test_one_split_and_one_column_can_be_chosen(layouts: dict[str, str], tmp_path: Path):
    folder = Path(layouts["parquet"].removeprefix("hf:"))
    table = pq.read_table(folder / "train-00001-of-00002.parquet")
    two = pa.table({"left": table["image"], "right": table["image"], "age": [1, 2, 3]})
    pq.write_table(two, tmp_path / "test-00000-of-00001.parquet")
    os.rename(tmp_path / "test-00000-of-00001.parquet", folder / "test-00000-of-00001.parquet")
    with pytest.raises(DataError, match="several columns of pictures: left, right"):
        load_dataset(f"hf:{folder}")
    dataset = load_dataset(f"hf:{folder}", settings={"split": "test", "image": "left"})
    assert dataset.attribute("age").to_list() == [1, 2, 3]
    assert len(load_dataset(f"hf:{folder}", settings={"split": "train"})) == 8
    with pytest.raises(DataError, match=r"has no split 'val'\. It has: test, train"):
        load_dataset(f"hf:{folder}", settings={"split": "val"})
    with pytest.raises(UnknownName, match="has no setting 'splits'"):
        load_dataset(f"hf:{folder}", settings={"splits": "val"})


def test_a_shard_that_is_cut_off_is_named(layouts: dict[str, str]):
    tar = Path(layouts["wds"].removeprefix("wds:")) / "s-01.tar"
    uris = load_dataset(layouts["wds"]).table["uri"].to_list()
    tar.write_bytes(tar.read_bytes()[: part_of(uris[-1]).first + 10])
    with pytest.raises(BadImage, match="the tar is cut off before the end of this picture"):
        open_image(uris[-1])
    again = load_dataset(layouts["wds"])  # the others can be used, if the user says to leave this one out
    assert again.table["uri"].to_list() == uris
    assert re.search(r"s-01\.tar is cut off in faces/.*\.png: nothing is known of what came after it", again.notes[0])
    tar.write_bytes(tar.read_bytes()[: part_of(uris[-1]).first - 700])
    with pytest.raises(DataError, match=r"s-01\.tar cannot be read as a tar(.|\n)*cut off"):
        load_dataset(layouts["wds"])
    parquet = min(Path(layouts["parquet"].removeprefix("hf:")).iterdir())
    rows = load_dataset(layouts["parquet"]).table["uri"].to_list()
    parquet.write_bytes(parquet.read_bytes()[:-20])
    with pytest.raises(BadImage, match=r"train-00000-of-00002\.parquet#0\+0#image: its row group cannot be read"):
        open_image(rows[0])
    with pytest.raises(DataError, match=parquet.name):
        load_dataset(layouts["parquet"])


def test_what_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(MissingData, match=r"There is no \.tar in"):
        load_dataset(f"wds:{tmp_path}")
    with pytest.raises(MissingData, match=r"2 of 2 tars are not there; the first is .*a-1\.tar"):
        load_dataset(f"wds:{tmp_path}/a-{{1..2}}.tar")
    with pytest.raises(MissingData, match="nowhere:// cannot be opened: the protocol 'nowhere' is not allowed"):
        load_dataset("wds:nowhere://")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(Exception, match=r"beholder-audit\[remote\]"):
        load_dataset("folder:s3://bucket/faces")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the hub: what `hf://` opens lies in a folder."""
    from fsspec.implementations.dirfs import DirFileSystem
    from fsspec.implementations.local import LocalFileSystem

    class Hub(DirFileSystem):
        protocol = "hf"
        cachable = False

        def __init__(self, **_: object) -> None:
            super().__init__(str(tmp_path / "hub"), LocalFileSystem())

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path.removeprefix("hf://")

    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "hf", Hub)
    return tmp_path / "hub"


def test_a_data_set_of_the_hub_is_read_there(layouts: dict[str, str], hub: Path, tmp_path: Path):
    shutil.copytree(layouts["parquet"].removeprefix("hf:"), hub / "datasets/someone/faces/data")
    dataset = load_dataset("hf:someone/faces")
    assert dataset.name == "hf:faces"
    assert part_of(dataset.table["uri"][0]).container.startswith("hf://datasets/someone/faces/data/train-00000")
    assert contents(dataset, tmp_path / "a") == contents(load_dataset(layouts["folder"]), tmp_path / "b")
    converted = hub / "datasets/someone/else@refs%2Fconvert%2Fparquet/default/train/0000.parquet"
    converted.parent.mkdir(parents=True)
    (hub / "datasets/someone/else").mkdir()
    shutil.copy(hub / "datasets/someone/faces/data/train-00000-of-00002.parquet", converted)
    assert len(load_dataset("hf:someone/else")) == 5


def test_a_name_that_the_hub_does_not_know_is_told(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(MissingData, match="There is no folder and no file at /nowhere/faces"):
        load_dataset("hf:/nowhere/faces")
    monkeypatch.setattr("beholder.datasets.content.files_below", lambda home: 1 / 0)
    with pytest.raises(MissingData, match="no folder no/such here, and the hub gives no data set of that name: div"):
        load_dataset("hf:no/such")


def test_names_in_a_tar_cannot_lead_out_of_it():
    part = part_of("wds:/data/x.tar#1+2#../../etc/passwd#3+4#x")
    assert part.container == "/data/x.tar"


def test_one_parquet_file_is_a_data_set(layouts: dict[str, str]):
    folder = Path(layouts["parquet"].removeprefix("hf:"))
    first = load_dataset(f"hf:{folder / 'train-00000-of-00002.parquet'}")
    assert len(first) == 5
    assert open_image(first.table["uri"][0]).size
