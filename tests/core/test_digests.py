"""Digests stand for contents: equal contents alike, different ones apart, also after a change of the file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from beholder.core import digests
from beholder.core.digests import digest, file_digest
from beholder.datasets import content
from beholder.datasets.dataset import ImageDigests
from beholder.models.spec import ModelSpec


def test_digest_ignores_the_order_of_keys():
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}) != digest({"a": 1, "b": [3]})


def test_equal_files_have_equal_digests_wherever_they_lie(tmp_path: Path):
    (tmp_path / "one").write_bytes(b"same")
    (tmp_path / "two").write_bytes(b"same")
    assert file_digest(tmp_path / "one") == file_digest(tmp_path / "two")


def test_a_changed_file_gets_a_new_digest(tmp_path: Path):
    path, memory = tmp_path / "file", ImageDigests(tmp_path / "memory.sqlite")
    path.write_bytes(b"before")
    (before,) = memory.of([str(path)])
    path.write_bytes(b"afterx")
    os.utime(path, ns=(1, 1))
    assert memory.of([str(path)]) != [before]


@pytest.fixture
def hundred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], Path, list[Path]]:
    """A hundred files, the memory of their digests, and the list of those that are read from now on."""
    paths, memory, read = [tmp_path / f"{i}.jpg" for i in range(100)], tmp_path / "memory.sqlite", []
    for path in paths:
        path.write_bytes(path.name.encode())
    addresses = [str(path) for path in paths]
    ImageDigests(memory).of(addresses)
    monkeypatch.setattr(content, "file_digest", lambda path: read.append(path) or file_digest(path))
    return addresses, memory, read


def test_of_unchanged_files_only_a_few_are_read_again(hundred):
    paths, memory, read = hundred
    assert ImageDigests(memory).of(paths) == [file_digest(Path(path)) for path in paths]
    assert len(set(read)) == digests.RECHECKED
    ImageDigests(memory, verify=True).of(paths)
    assert len(read) == digests.RECHECKED + 100


@pytest.mark.parametrize("verify", [False, True])
def test_a_content_that_changed_behind_its_date_is_found(hundred, verify: bool, caplog):
    paths, memory, _ = hundred
    changed = paths if not verify else paths[:1]  # without `verify` a sample is read: it must be among them
    for path in changed:
        status = os.stat(path)
        Path(path).write_bytes(b"other"[: status.st_size].ljust(status.st_size))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert ImageDigests(memory, verify=verify).of(paths) == [file_digest(Path(path)) for path in paths]
    assert "hashed anew" in caplog.text


@pytest.mark.parametrize("forged", ["exchanged", "edited", "of an older version", "no text"])
def test_a_row_that_was_not_written_so_is_not_used(hundred, forged: str, tmp_path: Path, caplog):
    paths, memory, _ = hundred
    with closing(sqlite3.connect(memory)) as connection, connection:
        one, two = connection.execute("select stamp, digest, seal from files limit 2").fetchall()
        if forged == "exchanged":
            connection.execute("update files set digest = ?, seal = ? where stamp = ?", (two[1], two[2], one[0]))
            connection.execute("update files set digest = ?, seal = ? where stamp = ?", (one[1], one[2], two[0]))
        elif forged == "edited":
            connection.execute("update files set digest = ?", ("0" * 40,))
        elif forged == "no text":
            connection.execute("update files set digest = x'ff00ff', seal = 7 where stamp = ?", (one[0],))
        elif forged == "of an older version":
            connection.execute("drop table files")
            connection.execute("create table digests (stamp text primary key, digest text)")
            connection.execute("insert into digests values (?, ?)", (one[0].rpartition("\0")[0], two[1]))
    assert ImageDigests(memory).of(paths) == [file_digest(Path(path)) for path in paths]
    assert ("not written there" in caplog.text) == (forged != "of an older version")


def test_the_memory_is_for_its_owner_alone(tmp_path: Path):
    before = os.umask(0)
    try:
        ImageDigests(tmp_path / "store" / "memory.sqlite").of([__file__])
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "store").iterdir()} == {
        "memory.sqlite": 0o600
    }


def test_a_damaged_memory_is_set_aside_and_files_are_read_again(tmp_path: Path):
    memory, path = tmp_path / "memory.sqlite", tmp_path / "file"
    path.write_bytes(b"bytes")
    memory.write_bytes(b"garbage" * 100)
    assert ImageDigests(memory).of([str(path)]) == [file_digest(path)]
    assert memory.with_suffix(".damaged").exists()
    assert ImageDigests(memory).of([str(path)]) == [file_digest(path)]


def test_a_memory_that_cannot_be_written_is_done_without(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"bytes")
    (tmp_path / "memory.sqlite").mkdir()
    assert ImageDigests(tmp_path / "memory.sqlite").of([str(path)]) == [file_digest(path)]


def test_a_missing_file_has_no_digest_and_many_are_fine(tmp_path: Path):
    paths = [tmp_path / str(i) for i in range(1200)]
    for path in paths[::2]:
        path.write_text(path.name)
    found = ImageDigests(tmp_path / "memory.sqlite").of(list(map(str, paths)))
    assert all(value is None for value in found[1::2])
    assert len(set(found[::2])) == 600


def test_a_models_digest_stands_for_everything_but_its_name():
    spec = ModelSpec("a", "clip", "folder", "r1", settings={"size": 224})
    assert spec.digest == ModelSpec("b", "clip", "folder", "r1", settings={"size": 224}).digest
    others = [
        ModelSpec("a", "siglip", "folder", "r1", settings={"size": 224}),
        ModelSpec("a", "clip", "folder", "r2", settings={"size": 224}),
        ModelSpec("a", "clip", "folder", "r1", "float16", settings={"size": 224}),
        ModelSpec("a", "clip", "folder", "r1", settings={"size": 336}),
    ]
    assert len({spec.digest, *(other.digest for other in others)}) == 5
