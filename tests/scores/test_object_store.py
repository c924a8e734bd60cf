"""Data and store behind URIs, on a local S3 and in memory: the same scores bit for bit, and nothing is done twice."""

from __future__ import annotations

import io
import json
import logging
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faults.toy import PROMPTS, Pairs, Towers
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core import files
from beholder.core.errors import DataError, RemoteError
from beholder.core.files import RemotePath, place
from beholder.datasets import content, load_dataset
from beholder.scores import fill as filling
from beholder.scores import shelf as shelves
from beholder.scores.fill import FillOptions, fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store, stored_models, verify_store

fsspec = pytest.importorskip("fsspec")
s3fs = pytest.importorskip("s3fs")
moto = pytest.importorskip("moto.server")
COUNT, SECRET = 11, "pass-word-1"
LAYOUTS = {"folder": "folder:{}/people", "tars": "wds:{}/s-{{0..1}}.tar", "parquet": "hf:{}/parquet"}


@pytest.fixture(scope="module")
def s3() -> Iterator[None]:
    """An S3 of our own on this machine."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:{1}".format(*server.get_host_and_port()))
        patched.setenv("AWS_ACCESS_KEY_ID", "someone")
        patched.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patched.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("bucket")
        yield
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(filling, "BLOCK_ROWS", 4)
    forget()


def forget() -> None:
    """As a new process does."""
    for cached in (content._remote_stamp, content._group):
        cached.cache_clear()
    for system in s3fs.S3FileSystem._cache.values():
        system.invalidate_cache()


@pytest.fixture(params=["s3", "memory"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder behind a URI."""
    if request.param == "s3":
        request.getfixturevalue("s3")
    return f"{request.param}://bucket/{tmp_path.name}"


@pytest.fixture
def home(people: Callable[..., Path], remote: str, tmp_path: Path) -> str:
    """The same people as files, two tars and two Parquet shards behind a URI; as files here too."""
    folder = people(COUNT)
    table = pl.read_csv(folder / "people.csv")
    for path in folder.iterdir():
        put(f"{remote}/people/{path.name}", path.read_bytes())
    for shard, rows in enumerate((table[:7], table[7:])):
        tar, buffer = io.BytesIO(), io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as file:
            for image, name, gender in rows.rows():
                labels = json.dumps({"name": name, "gender": gender}).encode()
                for ending, data in {"json": labels, "png": (folder / image).read_bytes()}.items():
                    member = tarfile.TarInfo(f"{Path(image).stem}.{ending}")
                    member.size = len(data)
                    file.addfile(member, io.BytesIO(data))
        put(f"{remote}/s-{shard}.tar", tar.getvalue())
        images = [{"bytes": (folder / name).read_bytes(), "path": name} for name in rows["image"]]
        columns = {"image": images, "name": rows["name"].to_list(), "gender": rows["gender"].to_list()}
        pq.write_table(pa.table(columns), buffer, row_group_size=4)
        put(f"{remote}/parquet/train-{shard:05}-of-00002.parquet", buffer.getvalue())
    return remote


def put(uri: str, data: bytes) -> None:
    RemotePath(uri).write_bytes(data)


def filled(dataset: str, scorer: Any, store: str | Path, **options: Any) -> np.ndarray:
    task = Task("toy", load_dataset(dataset), PROMPTS)
    return fill([task], scorer, Store(store), FillOptions(processes=0, threads=2, **options)).matrices[0].values


@pytest.mark.slow
def test_every_layout_behind_a_uri_gives_the_local_scores(home: str, tmp_path: Path):
    for make in (Towers, Pairs) if home.startswith("memory") else (Towers,):
        local = filled(f"folder:{tmp_path}/people", make(), tmp_path / "store")
        for number, (layout, name) in enumerate(LAYOUTS.items()):
            scorer = make()
            values = filled(name.format(home), scorer, f"{home}/store")
            assert np.array_equal(values, local), layout
            assert scorer.asked == (0 if number else COUNT)  # the same pictures in another layout are known
    store = Store(f"{home}/store")
    assert {model.images for model in stored_models(store)} == {COUNT}
    assert verify_store(store).problems == []


class Stopped(Towers):
    """Stops in the middle, after the first batch."""

    def embed_prepared(self, prepared: Any) -> np.ndarray:
        if self.asked >= 4:
            raise KeyboardInterrupt
        return super().embed_prepared(prepared)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("remote", "machine"), [("s3", "another"), ("memory", "this")], indirect=["remote"])
def test_a_run_goes_on_in_the_middle_of_a_shard(
    home: str, layout: str, machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What was stored is neither scored nor fetched again, on another machine either."""
    dataset = LAYOUTS[layout].format(home)
    with pytest.raises(KeyboardInterrupt):
        filled(dataset, Stopped(), f"{home}/store")
    forget()
    if machine == "another":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    monkeypatch.setattr("beholder.core.digests.RECHECKED", 0)
    fetched: list[str] = []
    read, group = files.read_remote, content._group.__wrapped__

    def noted_read(uri: str, start: int | None = None, end: int | None = None) -> bytes:
        fetched.append(f"{uri}#{start}")
        return read(uri, start, end)

    def noted_group(path: str, stamp: str | None, number: int, column: str) -> Any:
        fetched.append(f"{path}#{number}")
        return group(path, stamp, number, column)

    if machine == "this" and layout == "tars":  # a tar that did not change is not looked through again
        monkeypatch.setattr("beholder.datasets.content.open_binary", lambda path, block: 1 / 0)
    monkeypatch.setattr(files, "read_remote", noted_read)
    monkeypatch.setattr(content, "_group", noted_group)
    scorer = Towers()
    values = filled(dataset, scorer, f"{home}/store")
    assert np.array_equal(values, filled(f"folder:{tmp_path}/people", Towers(), tmp_path / "store"))
    assert scorer.asked == COUNT - 4
    assert len(set(fetched)) == (2 if layout == "parquet" else COUNT - 4)  # Parquet: the other row groups
    assert not (layout == "parquet" and any("00000" in each and each.endswith("#0") for each in fetched))


@pytest.mark.slow
def test_a_tar_that_is_cut_off_names_its_picture_and_the_rest_can_be_used(home: str):
    tar = RemotePath(f"{home}/s-0.tar")
    last = load_dataset(f"wds:{home}/s-0.tar").table["uri"][-1]
    tar.write_bytes(tar.read_bytes()[: content.part_of(last).first + 5])
    forget()
    with pytest.raises(DataError, match=r"1 of 11 images cannot be read:\n.*s-0\.tar#.*00006\.png: the tar is cut off"):
        filled(LAYOUTS["tars"].format(home), Towers(), f"{home}/store")
    assert len(filled(LAYOUTS["tars"].format(home), Towers(), f"{home}/store", skip_bad_images=True)) == COUNT - 1


@pytest.mark.slow
def test_a_put_that_fails_ends_the_run_with_its_name_and_the_next_goes_on(home: str, tmp_path: Path):
    put_one, puts = RemotePath.write_bytes, []

    def failing(self: RemotePath, data: bytes) -> None:
        puts.append(self)
        if self.suffix == ".parquet" and sum(each.suffix == ".parquet" for each in puts) == 2:
            from beholder.core.files import remote_errors

            with remote_errors(self, "written"):
                raise ConnectionError("the line is cut")
        put_one(self, data)

    first, second = Towers(), Towers()
    with (
        patch.object(RemotePath, "write_bytes", failing),
        pytest.raises(RemoteError, match=r"\.parquet cannot be written: the line is cut.*\n.*Run the same"),
    ):
        filled(f"folder:{home}/people", first, f"{home}/store")
    values = filled(f"folder:{home}/people", second, f"{home}/store")
    assert np.array_equal(values, filled(f"folder:{tmp_path}/people", Towers(), tmp_path / "store"))
    assert 0 < second.asked < COUNT


@pytest.mark.slow
def test_a_network_that_fails_while_images_are_read_loses_nothing(home: str, monkeypatch: pytest.MonkeyPatch):
    read, count = files.read_remote, iter(range(99))

    def failing(uri: str, *span: int | None) -> bytes:
        if next(count) == 9:
            raise RemoteError(f"{uri} cannot be read: timed out.")
        return read(uri, *span)

    monkeypatch.setattr(files, "read_remote", failing)
    with pytest.raises(RemoteError, match="timed out"):
        filled(f"folder:{home}/people", Towers(), f"{home}/store")
    monkeypatch.setattr(files, "read_remote", read)
    scorer = Towers()
    filled(f"folder:{home}/people", scorer, f"{home}/store")
    assert scorer.asked <= COUNT - 4


def test_without_credentials_or_a_bucket_the_error_says_so(s3: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with pytest.raises(RemoteError, match=r"s3://nowhere/store/.* cannot be written: .*bucket does not exist"):
        Store("s3://nowhere/store").images(Towers().spec).check_writable(1, "images")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setattr(s3fs.S3FileSystem, "_cache", {})
    with pytest.raises(RemoteError, match=r"Unable to locate credentials(.|\n)*AWS_ACCESS_KEY_ID"):
        Store("s3://bucket/store").images(Towers().spec).check_writable(1, "images")


@pytest.mark.slow
def test_a_damaged_block_behind_a_uri_is_set_aside_and_scored_again(home: str, caplog: pytest.LogCaptureFixture):
    dataset, store = f"folder:{home}/people", Store(f"{home}/store")
    values = filled(dataset, Towers(), store.root)
    block = next(store.images(Towers().spec).blocks())
    block.write_bytes(block.read_bytes()[:-3] + b"abc")
    assert [problem for problem in verify_store(store).problems if "not those that were written" in problem]
    scorer = Towers()
    assert np.array_equal(filled(dataset, scorer, store.root), values)
    assert "Set aside" in caplog.text
    assert 0 < scorer.asked < COUNT
    assert block.with_suffix(".damaged").is_file()


def test_two_runs_at_once_share_a_store(home: str):
    """Neither locks the other out."""
    stores = [Store(f"{home}/store") for _ in range(2)]
    shelf, other = (store.images(Towers().spec) for store in stores)
    values = np.ones((1, 8), np.float32)
    shelf.put(["a"], {"vector": values})
    other.put(["a"], {"vector": values})  # the same block: the same name and bytes
    other.put(["b"], {"vector": values})
    assert shelf.missing(["a", "b"]) == []
    assert len(list(shelf.blocks())) == 2


def test_many_blocks_are_opened_by_their_index(remote: str, monkeypatch: pytest.MonkeyPatch):
    store, values = Store(f"{remote}/store"), np.ones((1, 8), np.float32)
    monkeypatch.setattr(shelves, "INDEXED_FROM", 5)
    for i in range(6):
        store.images(Towers().spec).put([str(i)], {"vector": values})
    assert store.images(Towers().spec).missing(["0", "9"]) == ["9"]  # writes the index
    read: list[RemotePath] = []
    whole = RemotePath.read_bytes
    monkeypatch.setattr(RemotePath, "read_bytes", lambda path: read.append(path) or whole(path))
    assert store.images(Towers().spec).missing([*map(str, range(6)), "9"]) == ["9"]
    assert [path.name for path in read] == ["index"]


@pytest.mark.slow
def test_the_commands_for_the_store_take_a_uri(home: str):
    filled(f"folder:{home}/people", Towers(), f"{home}/store")
    run = CliRunner().invoke
    (entry,) = json.loads(run(app, ["store", "--store", f"{home}/store", "--json"]).stdout)
    assert (entry["name"], entry["images"]) == ("towers", COUNT)
    checked = run(app, ["store", "verify", "--store", f"{home}/store"])
    assert (checked.exit_code, "Problems: 0" in checked.output) == (0, True)
    put(f"{home}/store/x.damaged", b"")
    cleaned = run(app, ["store", "clean", "--all", "--leftovers", "--yes", "--store", f"{home}/store"])
    assert "Removed 1 models and 1 leftover files" in cleaned.output
    assert not RemotePath(f"{home}/store/{entry['folder']}").status()


def test_no_credentials_are_shown_or_kept(people: Callable[..., Path], tmp_path: Path, caplog):
    """Neither in records, errors, logs, pages nor in what is remembered."""
    caplog.set_level(logging.INFO)
    uri = f"memory://me:{SECRET}@host/{tmp_path.name}"
    folder = people(6)
    for path in folder.iterdir():
        put(f"{uri}/people/{path.name}", b"" if path.name == "00003.png" else path.read_bytes())
    (tmp_path / "prompts.csv").write_text("text\na\nb\n")
    command = ["audit", "null", "--dataset", f"folder:{uri}/people", "--prompts", str(tmp_path / "prompts.csv")]
    command += ["--store", f"{uri}/store", "--out", str(tmp_path / "run"), "--draws", "100"]
    with patch("sys.argv", ["beholder", *command]):
        refused = CliRunner().invoke(app, command)
        assert isinstance(refused.exception, DataError)
        assert "memory://***@host" in str(refused.exception)
        done = CliRunner().invoke(app, [*command, "--skip-bad-images"])
    assert done.exit_code in (0, 1), done.output  # with so few people nothing is compared
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    kept = [path.read_bytes() for path, _ in RemotePath(f"{uri}/store").walk()]
    shown = (refused.output + str(refused.exception) + done.output + caplog.text).encode()
    assert not [data[:300] for data in [*written, *kept, shown] if SECRET.encode() in data]
    assert re.search(r'"image": "memory://\*\*\*@host', (tmp_path / "run/run.json").read_text())


def test_a_file_uri_is_a_folder(tmp_path: Path):
    assert place(f"file://{tmp_path}/store") == tmp_path / "store"
