"""Reading ahead: batches of images are opened and prepared while the model works on the batch before.

Where there are many files and the preparation can travel, worker processes do it (`workers.py`). A scorer with a
decoder is handed whole files (`whole_files.py`). All else is done in threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from PIL.Image import Image

from beholder.core.digests import content_digest
from beholder.core.errors import BadImage
from beholder.datasets.content import is_remote, part_of, read_content
from beholder.datasets.images import DRAWN, is_plain_file, open_image
from beholder.models.preparation import Decoder, Jpeg, fixed_shape
from beholder.models.scorer import Prepared, Scorer, decoder_of, preparation_of
from beholder.scores.workers import (
    PictureReader,
    Slab,
    Workers,
    attached,
    fits,
    give_back,
    pictures_fit,
    prepare_to_start,
    usable_cores,
)

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


# Reading ahead

Batch = TypeVar("Batch")
Started = TypeVar("Started")
Pictures = Any  # a list of prepared pictures, or an array with a row for each
AHEAD_OF_DECODER = 3
"""Batches of files that are read before they are decoded."""
AHEAD_OF_MODEL = 3
"""Batches that are decoded before the model needs them."""
PROCESSES_FROM = 512
"""Fewer files than this are done in threads before processes would have started."""


@dataclass(frozen=True)
class ReadOptions:
    """How images are opened; moves no score."""

    threads: int = field(default_factory=lambda: min(8, (os.cpu_count() or 2) + 1))
    """Threads that open images."""
    processes: int = field(default_factory=usable_cores)
    """Processes that open images instead where there are many files; 0 for none."""


class Opened(NamedTuple):
    """The images of a batch that could be read, with their pictures."""

    size: int
    uris: list[str]
    pictures: Pictures
    faults: list[BadImage]
    digests: dict[str, str]
    """Of the files that were not hashed before."""


class WorkersOnDemand(ExitStack):
    """The worker processes of one filling, started when the work is first worth it."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__()
        self._count = options.processes

    def expect(self, files: int) -> None:
        """So many files may have to be opened soon."""
        if self.pay_for(files):
            prepare_to_start()

    def dismiss(self) -> None:
        """No more files are opened: processes end while other work goes on."""
        if "started" in vars(self):
            self.started.dismiss()

    def pay_for(self, files: int) -> bool:
        """Whether so many files are done sooner with processes than without."""
        return self._count > 0 and files >= PROCESSES_FROM

    @cached_property
    def started(self) -> Workers:
        """The processes, started now if they were not."""
        return self.enter_context(Workers(self._count))


class Reader:
    """Opens batches of images for one scorer."""

    def __init__(self, scorer: Scorer, options: ReadOptions, workers: WorkersOnDemand) -> None:
        self._scorer, self._options, self._workers = scorer, options, workers
        self._decoder, self._preparation = decoder_of(scorer), preparation_of(scorer)

    def read(
        self, batches: Sequence[list[str]], key: Callable[[str], str], stored: Callable[[str], bool]
    ) -> Iterator[Opened]:
        """Batch after batch, in order. Files without a key are hashed; those that are `stored` are left out then."""
        if self._decoder:
            return self._by_decoder(batches, self._decoder, key, stored)
        reader = self._picture_reader(batches)
        if reader:
            return self._by_processes(batches, reader, key, stored)
        return self._by_threads(batches, key, stored)

    def _picture_reader(self, batches: Sequence[list[str]]) -> PictureReader | None:
        """Worker processes for these batches, if they pay and the scorer's preparation can travel to them."""
        files = sum(not uri.startswith(DRAWN) for batch in batches for uri in batch)
        if not self._workers.pay_for(files) or self._preparation is None:
            return None
        if type(self._preparation).__module__ == "__main__":  # workers do not know the user's script
            return None
        kind = fixed_shape(self._preparation)
        if kind is None or not pictures_fit(max(map(len, batches)), *kind):
            return None
        return PictureReader(self._workers.started, self._preparation, *kind)

    def _by_processes(
        self,
        batches: Sequence[list[str]],
        reader: PictureReader,
        key: Callable[[str], str],
        stored: Callable[[str], bool],
    ) -> Iterator[Opened]:
        for batch, rows, answers in reader.read(batches, hashed=lambda uri: bool(key(uri))):
            good = [
                row for row, (fault, fresh) in enumerate(answers) if fault is None and not (fresh and stored(fresh))
            ]
            pictures = rows if len(good) == len(batch) else rows[good]
            faults = [fault for fault, _ in answers if fault]
            digests = {uri: fresh for uri, (_, fresh) in zip(batch, answers, strict=True) if fresh}
            yield Opened(len(batch), [batch[row] for row in good], pictures, faults, digests)

    def _by_threads(
        self, batches: Sequence[list[str]], key: Callable[[str], str], stored: Callable[[str], bool]
    ) -> Iterator[Opened]:
        prepare = self._preparation or self._scorer.prepare

        def read(uri: str) -> File:
            return _opened_file(uri, key(uri), prepare, stored)

        with ThreadPoolExecutor(self._options.threads) as pool:
            depth = max(2, -(-2 * self._options.threads // max(1, self._scorer.batch_size)))
            try:
                for futures in _few_ahead(batches, lambda batch: [pool.submit(read, uri) for uri in batch], depth):
                    files = [future.result() for future in futures]
                    yield _opened_batch(files, [file.picture for file in files if file.picture is not None], key)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _by_decoder(
        self, batches: Sequence[list[str]], decoder: Decoder, key: Callable[[str], str], stored: Callable[[str], bool]
    ) -> Iterator[Opened]:
        """Files are read and hashed ahead, and two threads decode batches on the device while the model works."""

        def read(batch: list[str]) -> ReadFiles:
            return files.begin(batch, [key(uri) for uri in batch])

        def decoded(files: list[File]) -> tuple[list[File], Pictures]:
            pictures = [file.picture for file in files if file.picture is not None]
            return files, decoder.decode(pictures) if pictures else []

        def left_to_do(begun: ReadFiles) -> list[File]:
            return [f._replace(picture=None) if f.key and stored(f.key) else f for f in files.finish(begun)]

        with self._files(batches, decoder) as files, ThreadPoolExecutor(2) as decoding:
            ready = map(left_to_do, _few_ahead(batches, read, AHEAD_OF_DECODER))
            for future in _few_ahead(ready, lambda files: decoding.submit(decoded, files), AHEAD_OF_MODEL):
                yield _opened_batch(*future.result(), key)

    def _files(self, batches: Sequence[list[str]], decoder: Decoder) -> FileReader | ThreadedFileReader:
        together = AHEAD_OF_DECODER + AHEAD_OF_MODEL
        if self._workers.pay_for(sum(map(len, batches))) and files_fit(max(batches, key=len), together):
            return FileReader(self._workers.started, decoder.encoding, together)
        return ThreadedFileReader(decoder.encoding, together)


def _opened_batch(files: Sequence[File], pictures: Pictures, key: Callable[[str], str]) -> Opened:
    fresh = {file.uri: file.key for file in files if file.key and not key(file.uri)}
    uris = [file.uri for file in files if file.picture is not None]
    return Opened(len(files), uris, pictures, [file.fault for file in files if file.fault], fresh)


def _opened_file(uri: str, key: str, prepare: Callable[[Image], Prepared], stored: Callable[[str], bool]) -> File:
    """Open and prepare a picture; without one if its content is stored already."""
    try:
        data = None if key else read_content(uri)
        key = key or content_digest(cast(bytes, data))
        return File(uri, key, None if data is not None and stored(key) else prepare(open_image(uri, data)))
    except BadImage as error:
        return File(uri, key, fault=error)


def _few_ahead(batches: Iterable[Batch], start: Callable[[Batch], Started], depth: int) -> Iterator[Started]:
    """What `start` makes of every batch, started `depth` batches before it is needed."""
    waiting: deque[Started] = deque()
    for batch in batches:
        waiting.append(start(batch))
        if len(waiting) >= depth:
            yield waiting.popleft()
    yield from waiting
