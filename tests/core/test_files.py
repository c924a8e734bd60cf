"""A file is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from beholder.core.files import write_whole


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
