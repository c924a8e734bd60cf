"""Digests: a short name for a content, so that equal contents are recognised and different ones never mixed up.

Values are hashed through canonical JSON; files through their bytes, remembered by path, size and time of change.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

log = logging.getLogger(__name__)
Item = TypeVar("Item")

CHUNK = 1 << 16
NOT_HASHED = ""
"""Stands for the digest of a file that has not been read yet."""
PART = 500
"""Files looked at together: SQLite takes so many values in one question, and memory stays small."""


def digest(value: Any) -> str:
    """Twenty hex digits that stand for a JSON value; the order of keys does not matter.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def file_digest(path: Path) -> str:
    """Forty hex digits of a file's bytes; equal files have equal digests wherever they lie."""
    hasher, buffer = hashlib.blake2b(digest_size=20), memoryview(bytearray(CHUNK))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(buffer):
            hasher.update(buffer[:size])
    return hasher.hexdigest()


def content_digest(data: bytes | bytearray | memoryview) -> str:
    """The digest of a file that has these bytes.

    >>> content_digest(b"") == content_digest(bytearray())
    True
    """
    return hashlib.blake2b(data, digest_size=20).hexdigest()


class FileDigests:
    """File digests remembered between runs, so that a second run over 100,000 images only looks at their dates.

    The memory is a SQLite file: safe under several processes and under a kill at any moment. Without it (a damaged
    file, a full disk) everything is read again and nothing else changes.
    """

    def __init__(self, memory: Path) -> None:
        memory.parent.mkdir(parents=True, exist_ok=True)
        self._memory = memory
        self._stamps: dict[Path, str] = {}

    def of(self, paths: Sequence[Path]) -> list[str | None]:
        """One digest per path, in order; None for a file that is not there or not readable."""
        stamps, known = self._known(paths)
        fresh = {stamp: path for path, stamp in zip(paths, stamps, strict=True) if stamp and stamp not in known}
        files = list(fresh.values())
        digests = zip(fresh, _hashed_by_threads(files), strict=True)
        while group := list(islice(digests, PART)):
            computed = {stamp: value for stamp, value in group if value}
            self._remember(computed)
            known.update(computed)
        return [known.get(stamp) if stamp else None for stamp in stamps]

    def remembered(self, paths: Sequence[Path]) -> list[str | None]:
        """The digests that are remembered; NOT_HASHED for another file that is there, None for one that is not."""
        stamps, known = self._known(paths)
        self._stamps.update({path: stamp for path, stamp in zip(paths, stamps, strict=True) if stamp})
        return [known.get(stamp, NOT_HASHED) if stamp else None for stamp in stamps]

    def remember(self, digests: Mapping[Path, str]) -> None:
        """Keep the digests of files that `remembered` did not know; a file changed since is hashed again."""
        self._remember({self._stamps[path]: value for path, value in digests.items()})

    def _known(self, paths: Sequence[Path]) -> tuple[list[str | None], dict[str, str]]:
        """What stands for each file as it is now, and the digests that are remembered."""
        stamps = [_stamp(path) for path in paths]
        known: dict[str, str] = {}
        for part in _parts([stamp for stamp in stamps if stamp]):
            known.update(self._recall(part))
        return stamps, known

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._memory, timeout=60)
        connection.execute("pragma synchronous = off")  # a memory lost with the machine's power is made again
        connection.execute("create table if not exists digests (stamp text primary key, digest text)")
        return connection

    def _recall(self, stamps: Sequence[str]) -> dict[str, str]:
        marks = ",".join("?" * len(stamps))
        question = f"select stamp, digest from digests where stamp in ({marks})"
        return dict(self._asked(lambda connection: connection.execute(question, stamps).fetchall()) or [])

    def _remember(self, digests: dict[str, str]) -> None:
        if digests:
            rows = list(digests.items())
            self._asked(lambda connection: connection.executemany("insert or replace into digests values (?, ?)", rows))

    def _asked(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """What the memory answers; None where it fails, which costs time and nothing else."""
        try:
            with closing(self._connect()) as connection, connection:
                return work(connection)
        except sqlite3.OperationalError as error:  # locked for long, read-only, no room left
            log.warning("%s cannot be used (%s): files are read again", self._memory, error)
        except sqlite3.DatabaseError as error:
            log.warning("%s is damaged (%s): it is set aside and files are read again", self._memory, error)
            with suppress(OSError):
                self._memory.rename(self._memory.with_suffix(".damaged"))
        return None


def _stamp(path: Path) -> str | None:
    """Path, size and time of change: if these are as they were, so are the bytes."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return f"{os.path.abspath(path)}\0{status.st_size}\0{status.st_mtime_ns}"


def _digest_or_none(path: Path) -> str | None:
    try:
        return file_digest(path)
    except OSError:
        return None


def _hashed_by_threads(paths: Sequence[Path]) -> Iterator[str | None]:
    with ThreadPoolExecutor(8) as pool:
        for part in _parts(paths):
            yield from pool.map(_digest_or_none, part)


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[start : start + PART] for start in range(0, len(items), PART))
