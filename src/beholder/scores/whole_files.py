"""Whole files for a decoder on the card: worker processes read and hash them into shared memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from beholder.core.digests import content_digest
from beholder.core.errors import BadImage
from beholder.datasets.content import is_remote, part_of, read_content
from beholder.datasets.images import is_plain_file
from beholder.models.contrastive.encoding import Jpeg
from beholder.scores.workers import Slab, Workers, attached, fits, give_back

Bytes = npt.NDArray[np.uint8]
Encoding = Callable[[str, Bytes | None], Any]
PER_JOB = 16


class File(NamedTuple):
    """A file as it was read: its digest, what a decoder takes of it, or why it cannot be read."""

    uri: str
    key: str
    picture: Any = None
    fault: BadImage | None = None


class _InRoom(NamedTuple):
    """Stands for a JPEG whose bytes lie in shared memory."""

    size: int
    pixels: int


class ReadFiles(NamedTuple):
    """A batch of files that workers are reading."""

    names: list[str]
    rooms: list[Bytes]
    answers: list[Future[list[File]]]


class FileReader:
    """Whole files for a decoder, read and hashed by workers into shared memory."""

    def __init__(self, workers: Workers, encoding: Encoding, batches: int) -> None:
        """`batches` are in memory together: after so many more a batch's files are gone."""
        self._workers, self._encoding = workers, encoding
        self._memories: deque[SharedMemory | None] = deque([None] * batches)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for memory in self._memories:
            if memory:
                give_back(memory)

    def begin(self, uris: list[str], keys: list[str]) -> ReadFiles:
        """Hand the files out; those without a key are hashed."""
        sizes = [file_size(uri) + 1 for uri in uris]
        memory = self._room(sum(sizes))
        slab = Slab(memory.name, (memory.size,), "u1")
        rooms = np.split(slab.array(memory)[: sum(sizes)], np.cumsum(sizes)[:-1])
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        asked = list(zip(uris, keys, starts, sizes, strict=True))
        jobs = [asked[start : start + PER_JOB] for start in range(0, len(asked), PER_JOB)]
        return ReadFiles(uris, rooms, [self._workers.submit(_read_files, slab, job, self._encoding) for job in jobs])

    def finish(self, begun: ReadFiles) -> list[File]:
        """Wait for the files of a batch, in the thread that hands out."""
        files = [file for future in begun.answers for file in self._workers.result(future, begun.names)]
        return [
            file._replace(picture=Jpeg(file.uri, room[: file.picture.size], file.picture.pixels))
            if isinstance(file.picture, _InRoom)
            else file
            for file, room in zip(files, begun.rooms, strict=True)
        ]

    def _room(self, size: int) -> SharedMemory:
        """The memory that was used longest ago, or a larger one in its place."""
        memory = self._memories.popleft()
        if memory is None or memory.size < size:
            if memory:
                give_back(memory)
            memory = SharedMemory(create=True, size=size * 5 // 4)
        self._memories.append(memory)
        return memory


class ThreadedFileReader:
    """The same by a few threads, for few files: many threads would only take Python's lock from those at the card."""

    def __init__(self, encoding: Encoding, batches: int) -> None:
        self._encoding, self._pool = encoding, ThreadPoolExecutor(6)
        self._arenas = deque(np.empty(0, np.uint8) for _ in range(batches))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def begin(self, uris: list[str], keys: list[str]) -> ReadFiles:
        """Hand the files out; those without a key are hashed."""
        sizes = [file_size(uri) + 1 for uri in uris]
        arena = self._arenas.popleft()
        arena = arena if len(arena) >= sum(sizes) else np.empty(sum(sizes) * 5 // 4, np.uint8)
        self._arenas.append(arena)
        rooms = np.split(arena[: sum(sizes)], np.cumsum(sizes)[:-1])
        asked = list(zip(uris, keys, rooms, strict=True))
        jobs = [asked[start : start + PER_JOB] for start in range(0, len(asked), PER_JOB)]
        return ReadFiles(uris, rooms, [self._pool.submit(self._read, job) for job in jobs])

    def finish(self, begun: ReadFiles) -> list[File]:
        """Wait for the files of a batch."""
        return [file for future in begun.answers for file in future.result()]

    def _read(self, asked: Sequence[tuple[str, str, Bytes]]) -> list[File]:
        return [read_file(uri, key, room, self._encoding) for uri, key, room in asked]


def files_fit(uris: Sequence[str], batches: int) -> bool:
    """Whether there is shared memory for so many batches of such files."""
    return fits(batches * 2 * sum(map(file_size, uris)))


def file_size(uri: str) -> int:
    """The file's length; 0 for one that is not there, or no plain file."""
    try:
        return os.stat(uri).st_size if is_plain_file(uri) else 0
    except OSError:
        return 0


def read_file(uri: str, key: str, room: Bytes, encoding: Encoding) -> File:
    """Read a file, into the room if it is shorter, and hash it unless it has a key."""
    try:
        data = _read_into(room, uri) if is_plain_file(uri) else None
        key = key or content_digest(data.data if data is not None else b"")
        return File(uri, key, encoding(uri, data))
    except BadImage as error:
        return File(uri, key, fault=error)
    except OSError as error:
        return File(uri, key, fault=BadImage(uri, f"cannot be read: {error.strerror}"))


def _read_into(room: Bytes, uri: str) -> Bytes:
    """The file's bytes, in the room if it is as long as it was."""
    if is_remote(uri) or part_of(uri):
        return np.frombuffer(read_content(uri), np.uint8)
    with open(uri, "rb", buffering=0) as file:
        size = file.readinto(room.data)
    return room[:size] if size == len(room) - 1 else np.fromfile(uri, np.uint8)


def _read_files(slab: Slab, asked: Sequence[tuple[str, str, int, int]], encoding: Encoding) -> list[File]:
    """In a worker: read files into their rooms; a JPEG that lies there travels as its length."""
    memory, files = attached(slab), []
    for uri, key, start, size in asked:
        room = memory[start : start + size]
        file = read_file(uri, key, room, encoding)
        if isinstance(file.picture, Jpeg) and np.may_share_memory(file.picture.data, room):
            file = file._replace(picture=_InRoom(len(file.picture.data), file.picture.pixels))
        files.append(file)
    return files
