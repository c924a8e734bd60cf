"""A disk on which one operation goes wrong. Loads nothing but Python: `victim.py` forks before anything has threads."""

from __future__ import annotations

import io
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self


class Disk:
    """The operations on files below a folder, counted; the one with the number `at` meets `fate` (from 0)."""

    def __init__(
        self, root: Path, fate: Callable[[str], None] = lambda path: None, at: int = -1, only: str = ""
    ) -> None:
        self._root, self._fate, self._at, self._only = str(root), fate, at, only
        self.done: list[str] = []
        self._kept: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Self:
        for owner, name, operation in (
            (os, "fsync", "fsync"),
            (os, "replace", "rename"),
            (os, "rename", "rename"),
            (os, "unlink", "unlink"),
            (os, "mkdir", "mkdir"),
            (os, "chmod", "chmod"),
            (os, "link", "link"),
            (sqlite3, "connect", "sqlite"),
        ):
            self._replace(owner, name, self._watched(getattr(owner, name), operation))
        self._replace(io, "open", self._opening(io.open))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, value in self._kept:
            setattr(owner, name, value)

    def happens(self, operation: str, path: str) -> None:
        """Count an operation, and let it meet its fate if it is the one."""
        if self._only in ("", operation):
            self.done.append(operation)
            if len(self.done) - 1 == self._at:
                self._fate(path)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _watched(self, function: Any, operation: str) -> Any:
        def watched(target: Any, *arguments: Any, **options: Any) -> Any:
            if operation == "fsync" or str(target).removeprefix("file://").startswith(self._root):
                self.happens(operation, str(target))
            return function(target, *arguments, **options)

        return watched

    def _opening(self, function: Any) -> Any:
        def opening(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not str(file).startswith(self._root):
                return function(file, mode, *arguments, **options)
            self.happens("open to write" if "w" in mode else "open to read", str(file))
            return _File(function(file, mode, *arguments, **options), self, str(file))

        return opening


class _File:
    """A file whose reading and writing are counted; of what is written when the disk fails, half arrives."""

    def __init__(self, file: Any, disk: Disk, path: str) -> None:
        self._file, self._disk, self._path = file, disk, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, *arguments: Any) -> Any:
        self._disk.happens("read", self._path)
        return self._file.read(*arguments)

    def write(self, data: bytes) -> int:
        self._file.write(data[: len(data) // 2])
        self._file.flush()
        self._disk.happens("write", self._path)
        return int(self._file.write(data[len(data) // 2 :]))
