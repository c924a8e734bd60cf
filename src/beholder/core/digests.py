"""Digests: a short name for a content, so that equal contents are recognised and different ones never mixed up.

Values are hashed through canonical JSON; files through their bytes, remembered by path, size, time of change and inode
(behind a URI: by the tag that changes with them).
"""

import hashlib
import json
import logging
import os
import random
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from beholder.core.errors import RemoteError, masked
from beholder.core.files import RemotePath, private_folder
from beholder.core.progress import Progress, silent

log = logging.getLogger(__name__)

NOT_HASHED = ""  # stands for the digest of a file that has not been read yet
RECHECKED = 16  # remembered files that are read again each time: an old date can hide a new content
PART = 500  # files looked at together: SQLite takes so many values in one question, and memory stays small
SHARED_ROWS, SHARED_SECONDS = 4096, 10.0  # when digests are put beside a store behind a URI


def digest(value: Any) -> str:
    """Twenty hex digits that stand for a JSON value; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def file_digest(path: Path) -> str:
    """Forty hex digits of a file's bytes; equal files have equal digests wherever they lie."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=20)).hexdigest()


def content_digest(data: bytes | bytearray | memoryview) -> str:
    """The digest of a file that has these bytes."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def file_stamp(path: str) -> str | None:
    """Path, size, time of change and inode: while they stay, so do the bytes, as a rule. None if there is no file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return f"{os.path.abspath(path)}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}"


class FileDigests:
    """File digests remembered between runs, so that a second run over 100,000 images only looks at their dates.

    The memory is a SQLite file: safe under several processes and under a kill at any moment. Every row is sealed: with
    a digest of what it says and of its file's path, size, time of change and inode. Each time a few remembered files
    are read again (all if `verify`): if one is not what was remembered, nothing else that is remembered is used.
    Without the memory (a damaged file, a full disk) everything is read again and nothing else changes.
    """

    _stamp: Callable[[str], str | None]  # stands for the bytes at an address as they are now
    _digest_of: Callable[[str], str | None]  # reads them

    def __init__(self, memory: Path, *, verify: bool = False, shared: "SharedDigests | None" = None) -> None:
        private_folder(memory.parent)
        self._memory, self._verify, self._shared = memory, verify, shared
        self._stamps: dict[str, str] = {}

    def of(self, paths: Sequence[str]) -> list[str | None]:
        """One digest per path, in order; None for a file that is not there or not readable."""
        stamps, known = self._known(paths)
        fresh = {stamp: path for path, stamp in zip(paths, stamps, strict=True) if stamp and stamp not in known}
        digests = zip(fresh, _by_threads(self._digest_of, list(fresh.values())), strict=True)
        while group := list(islice(digests, PART)):
            computed = {stamp: value for stamp, value in group if value}
            self._remember(computed)
            known.update(computed)
        return [known.get(stamp) if stamp else None for stamp in stamps]

    def remembered(self, paths: Sequence[str]) -> list[str | None]:
        """The digests that are remembered; NOT_HASHED for another file that is there, None for one that is not."""
        stamps, known = self._known(paths)
        return [known.get(stamp, NOT_HASHED) if stamp else None for stamp in stamps]

    def expect(self, path: str) -> None:
        """Note how a file is before it is read: if it changes meanwhile, it is hashed again by the next run."""
        if path not in self._stamps and (stamp := self._stamp(path)):
            self._stamps[path] = stamp

    def remember(self, digests: Mapping[str, str]) -> None:
        """Keep the digests of files that were expected."""
        self._remember({self._stamps.pop(path): value for path, value in digests.items() if path in self._stamps})

    def close(self) -> None:
        """Tell other machines what was learned here."""
        if self._shared:
            self._shared.write()

    def problems(self, progress: Progress = silent) -> list[str]:
        """What is wrong with the memory: rows with a wrong seal, and files that are not what is remembered of them."""
        if not self._memory.exists():
            return []
        rows = self._asked(lambda memory: memory.execute("select stamp, digest, seal from files").fetchall())
        if rows is None:
            return [f"{self._memory}: cannot be read."]
        good = {stamp: value for stamp, value, mark in rows if mark == _seal(stamp, value)}
        wrong = [f"{self._memory}: {len(rows) - len(good)} rows have a wrong seal."] if len(good) < len(rows) else []
        here = [(path, good[stamp]) for stamp in good if self._stamp(path := stamp.partition("\0")[0]) == stamp]
        with progress("checking remembered files", len(here), 0, unit="files") as advance:
            for (path, value), now in zip(here, _by_threads(self._digest_of, [path for path, _ in here]), strict=True):
                advance(1)
                if now not in (value, None):
                    wrong.append(f"{path}: its content is not what {self._memory.name} remembers.")
        return wrong

    def _known(self, paths: Sequence[str]) -> tuple[list[str | None], dict[str, str]]:
        """What stands for each file as it is now, and the digests that are remembered."""
        if self._shared:
            self._learn(self._shared)
        stamps = [self._stamp(path) for path in paths]
        known = self._recall([stamp for stamp in stamps if stamp])
        files = {stamp: path for path, stamp in zip(paths, stamps, strict=True) if stamp in known}
        chosen = list(files) if self._verify else random.sample(list(files), min(RECHECKED, len(files)))
        now = zip(chosen, _by_threads(self._digest_of, [files[stamp] for stamp in chosen]), strict=True)
        wrong = [stamp for stamp, value in now if value not in (known[stamp], None)]
        if wrong:
            log.warning(
                "%s remembers %d of %d files wrongly that were read again (the first: %s): %s",
                *(self._memory, len(wrong), len(chosen), masked(files[wrong[0]])),
                "these are hashed anew" if self._verify else "all files are hashed anew",
            )
            for stamp in wrong if self._verify else list(known):
                del known[stamp]
        return stamps, known

    def _recall(self, stamps: Sequence[str]) -> dict[str, str]:
        def ask(memory: sqlite3.Connection) -> list[tuple[str, str, str]]:
            sql = "select stamp, digest, seal from files where stamp in ({})"
            asked = ((sql.format(",".join("?" * len(part))), part) for part in _parts(stamps))
            return [row for query, part in asked for row in memory.execute(query, part)]

        rows = (self._asked(ask) or []) if stamps and self._memory.exists() else []
        known = {stamp: value for stamp, value, mark in rows if mark == _seal(stamp, value)}
        if len(known) < len(rows):
            log.warning(
                "%s: %d of %d rows were not written there: these files are read again",
                *(self._memory, len(rows) - len(known), len(rows)),
            )
        return known

    def _remember(self, digests: dict[str, str]) -> None:
        self._insert(digests)
        if self._shared:
            self._shared.add({stamp: value for stamp, value in digests.items() if "://" in stamp})

    def _learn(self, shared: "SharedDigests") -> None:
        """What other machines wrote, block by block, each once."""
        blocks = {f"block\0{name}": name for name in (entry.name for entry in shared.folder.entries())}
        known = self._recall(list(blocks))
        for mark, name in blocks.items():
            if mark not in known:
                self._insert({**shared.read(name), mark: name})

    def _insert(self, digests: Mapping[str, str]) -> None:
        if digests and os.access(self._memory.parent, os.W_OK):
            rows = [(stamp, value, _seal(stamp, value)) for stamp, value in digests.items()]
            self._asked(lambda memory: memory.executemany("insert or replace into files values (?, ?, ?)", rows))

    def _connect(self) -> sqlite3.Connection:
        if not os.access(self._memory.parent, os.W_OK):  # a read-only mount, where the memory is read all the same
            return sqlite3.connect(f"{self._memory.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        if not self._memory.exists():
            os.close(os.open(self._memory, os.O_CREAT | os.O_WRONLY, 0o600))
            self._memory.chmod(0o600)
        connection = sqlite3.connect(self._memory, timeout=60)
        connection.text_factory = lambda text: text.decode(errors="replace")  # damaged text: its seal will not fit
        connection.execute("pragma synchronous = off")  # a memory lost with the machine's power is made again
        connection.execute("create table if not exists files (stamp text primary key, digest text, seal text)")
        connection.execute("drop table if exists digests")  # older versions kept it, without seals
        return connection

    def _asked(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """What the memory answers; None where it fails, which costs time and nothing else."""
        try:
            with closing(self._connect()) as connection, connection:
                return work(connection)
        except (sqlite3.OperationalError, OSError) as error:  # locked for long, read-only, no room left
            log.warning("%s cannot be used (%s): files are read again", self._memory, error)
        except sqlite3.DatabaseError as error:
            log.warning("%s is damaged (%s): it is set aside and files are read again", self._memory, error)
            with suppress(OSError):
                self._memory.rename(self._memory.with_suffix(".damaged"))
        return None


def _seal(stamp: str, value: str) -> str:
    return content_digest(f"{value}\0{stamp}".encode("utf-8", "surrogatepass"))


class SharedDigests:
    """Digests of files behind URIs, in a folder behind a URI: blocks named after their content, never changed.

    A machine that goes on where another stopped need not read again what was stored. Digests of files on a machine's
    own disk are not shared: a path means another file elsewhere.
    """

    def __init__(self, folder: RemotePath) -> None:
        self.folder = folder
        self._new: dict[str, str] = {}
        self._since = time.monotonic()

    def read(self, name: str) -> dict[str, str]:
        """The digests of a block by what stands for each file; none if it was not written here."""
        with suppress(FileNotFoundError):
            data = (self.folder / name).read_bytes()
            if name == content_digest(data):
                return dict(json.loads(zlib.decompress(data)))
        return {}

    def add(self, digests: Mapping[str, str]) -> None:
        """Write these, now or with the next ones."""
        self._new.update(digests)
        if len(self._new) >= SHARED_ROWS or time.monotonic() - self._since > SHARED_SECONDS:
            self.write()

    def write(self) -> None:
        """Write what is not written yet."""
        if self._new:
            data = zlib.compress(json.dumps(self._new).encode())
            try:
                (self.folder / content_digest(data)).write_bytes(data)
            except RemoteError as error:  # as with the memory itself: it costs time and nothing else
                log.warning("Digests of %d files are not kept for other machines: %s", len(self._new), error)
        self._new, self._since = {}, time.monotonic()


def _by_threads(digest_of: Callable[[str], str | None], paths: Sequence[str]) -> Iterator[str | None]:
    with ThreadPoolExecutor(8) as pool:
        for part in _parts(paths):
            yield from pool.map(digest_of, part)


def _parts(items: Sequence[str]) -> Iterator[Sequence[str]]:
    return (items[start : start + PART] for start in range(0, len(items), PART))
