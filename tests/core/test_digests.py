"""Digests stand for contents: equal contents alike, different ones apart, also after a change of the file."""

from __future__ import annotations

import os
from pathlib import Path

from beholder.core.digests import FileDigests, digest, file_digest
from beholder.models.spec import ModelSpec


def test_digest_ignores_the_order_of_keys():
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}) != digest({"a": 1, "b": [3]})


def test_equal_files_have_equal_digests_wherever_they_lie(tmp_path: Path):
    (tmp_path / "one").write_bytes(b"same")
    (tmp_path / "two").write_bytes(b"same")
    assert file_digest(tmp_path / "one") == file_digest(tmp_path / "two")


def test_a_changed_file_gets_a_new_digest(tmp_path: Path):
    path, digests = tmp_path / "file", FileDigests(tmp_path / "memory.sqlite")
    path.write_bytes(b"before")
    (before,) = digests.of([path])
    path.write_bytes(b"afterx")
    os.utime(path, ns=(1, 1))
    assert digests.of([path]) != [before]


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"bytes")
    first = FileDigests(tmp_path / "memory.sqlite").of([path])
    monkeypatch.setattr("beholder.core.digests.file_digest", lambda path: 1 / 0)
    assert FileDigests(tmp_path / "memory.sqlite").of([path]) == first


def test_a_damaged_memory_is_set_aside_and_files_are_read_again(tmp_path: Path):
    memory, path = tmp_path / "memory.sqlite", tmp_path / "file"
    path.write_bytes(b"bytes")
    memory.write_bytes(b"garbage" * 100)
    assert FileDigests(memory).of([path]) == [file_digest(path)]
    assert memory.with_suffix(".damaged").exists()
    assert FileDigests(memory).of([path]) == [file_digest(path)]


def test_a_memory_that_cannot_be_written_is_done_without(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"bytes")
    (tmp_path / "memory.sqlite").mkdir()
    assert FileDigests(tmp_path / "memory.sqlite").of([path]) == [file_digest(path)]


def test_a_missing_file_has_no_digest_and_many_are_fine(tmp_path: Path):
    paths = [tmp_path / str(i) for i in range(1200)]
    for path in paths[::2]:
        path.write_text(path.name)
    found = FileDigests(tmp_path / "memory.sqlite").of(paths)
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
