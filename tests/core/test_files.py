"""A file is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from beholder.core.files import HOST, is_dead, remove_dead, write_whole


def test_a_file_is_written_with_its_folders_and_nothing_else_is_left(tmp_path: Path):
    path = tmp_path / "a" / "b" / "file.bin"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_and_no_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    path = tmp_path / "file.bin"
    write_whole(path, b"old")

    def full(_: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_and_its_new_folders_are_for_their_owner_alone(tmp_path: Path):
    before = os.umask(0)
    try:
        write_whole(tmp_path / "a" / "b" / "file.bin", b"one", private=True)
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a/b/file.bin")]
    assert modes == [0o700, 0o700, 0o600]


def test_an_error_names_the_file_that_was_to_be_written(tmp_path: Path):
    (tmp_path / "file.bin").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_whole(tmp_path / "file.bin", b"one")
    assert caught.value.filename == str(tmp_path / "file.bin")


def test_a_part_that_a_killed_process_left_goes_and_one_that_is_being_written_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Another machine's parts stay too: its locks may not be seen from here."""
    names = [f".file.bin.{HOST}.killed.part", ".file.bin.0badcafe.elsewhere.part", ".file.bin.old.part"]
    dead, elsewhere, old = (tmp_path / name for name in names)
    seen: list[bool] = []

    def flush(_: int) -> None:
        for path in (dead, elsewhere, old):
            path.touch()
        (alive,) = set(tmp_path.iterdir()) - {dead, elsewhere, old}
        seen.append(is_dead(alive))
        remove_dead(tmp_path)
        seen.append(dead.exists())

    monkeypatch.setattr(os, "fsync", flush)
    write_whole(tmp_path / "file.bin", b"new")
    assert seen == [False, False]
    assert sorted(tmp_path.iterdir()) == sorted([elsewhere, old, tmp_path / "file.bin"])
    assert (tmp_path / "file.bin").read_bytes() == b"new"
