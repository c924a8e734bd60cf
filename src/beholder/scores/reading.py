"""Reading ahead: batches of images are opened and prepared while the model works on the batch before.

Where there are many files and the preparation can travel, worker processes do it (`workers.py`). A scorer with a
decoder is handed whole files by threads. All else is done in threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from PIL.Image import Image

from beholder.core.digests import content_digest
from beholder.core.errors import BadImage
from beholder.datasets.content import is_remote, part_of, read_content
from beholder.datasets.images import DRAWN, is_plain_file, open_image
from beholder.models.preparation import Decoder, fixed_shape
from beholder.models.scorer import Prepared, Scorer, decoder_of, preparation_of
from beholder.scores.workers import PictureReader, Workers, fits_in_shared_memory, usable_cores

Bytes = npt.NDArray[np.uint8]
Started = TypeVar("Started")
Pictures = Any  # a list of prepared pictures, or an array with a row for each
FILE_READERS = 6
"""Threads that read and hash whole files: more of them only take Python's lock from the threads that drive the card."""
AHEAD_OF_DECODER = 4
"""Batches of files that are read and decoded before the model needs them."""
PROCESSES_FROM = 512
"""Fewer files than this are done in threads before processes would have started."""


@dataclass(frozen=True)
class ReadOptions:
    """How images are opened; moves no score."""

    workers: int = field(default_factory=lambda: min(8, (os.cpu_count() or 2) + 1))
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
        self, batches: list[list[str]], key: Callable[[str], str], stored: Callable[[str], bool]
    ) -> Iterator[Opened]:
        """Batch after batch, in order. Files without a key are hashed; those that are `stored` are left out then."""
        if self._decoder:
            return self._by_decoder(batches, self._decoder, key, stored)
        reader = self._picture_reader(batches)
        if reader:
            return self._by_processes(batches, reader, key, stored)
        return self._by_threads(batches, key, stored)

    def _picture_reader(self, batches: list[list[str]]) -> PictureReader | None:
        """Worker processes for these batches, if they pay and the scorer's preparation can travel to them."""
        files = sum(not uri.startswith(DRAWN) for batch in batches for uri in batch)
        if not self._workers.pay_for(files) or self._preparation is None:
            return None
        if type(self._preparation).__module__ == "__main__":  # workers do not know the user's script
            return None
        kind = fixed_shape(self._preparation)
        if kind is None or not fits_in_shared_memory(max(map(len, batches)), *kind):
            return None
        return PictureReader(self._workers.started, self._preparation, *kind)

    def _by_processes(
        self, batches: list[list[str]], reader: PictureReader, key: Callable[[str], str], stored: Callable[[str], bool]
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
        self, batches: list[list[str]], key: Callable[[str], str], stored: Callable[[str], bool]
    ) -> Iterator[Opened]:
        prepare = self._preparation or self._scorer.prepare

        def read(uri: str) -> _File:
            return _opened_file(uri, key(uri), prepare, stored)

        with ThreadPoolExecutor(self._options.workers) as pool:
            depth = max(2, -(-2 * self._options.workers // max(1, self._scorer.batch_size)))
            try:
                for futures in _few_ahead(batches, lambda batch: [pool.submit(read, uri) for uri in batch], depth):
                    files = [future.result() for future in futures]
                    yield _opened_batch(files, [file.picture for file in files if file.picture is not None], key)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _by_decoder(
        self, batches: list[list[str]], decoder: Decoder, key: Callable[[str], str], stored: Callable[[str], bool]
    ) -> Iterator[Opened]:
        """Threads read and hash files, two more decode batches on the device, while the model works."""
        memory = _ReadingMemory(AHEAD_OF_DECODER + 1)
        with ThreadPoolExecutor(FILE_READERS) as readers, ThreadPoolExecutor(2) as decoding:

            def read(part: list[tuple[str, Bytes]]) -> list[_File]:
                return [_read_file(uri, key(uri), room, decoder, stored) for uri, room in part]

            def decoded(parts: list[Future[list[_File]]]) -> tuple[list[_File], Pictures]:
                files = [file for part in parts for file in part.result()]
                pictures = [file.picture for file in files if file.picture is not None]
                return files, decoder.decode(pictures) if pictures else []

            def ahead(batch: list[str]) -> Future[tuple[list[_File], Pictures]]:
                rooms = list(zip(batch, memory.rooms(batch), strict=True))
                parts = [rooms[start : start + 16] for start in range(0, len(rooms), 16)]
                return decoding.submit(decoded, [readers.submit(read, part) for part in parts])

            for future in _few_ahead(batches, ahead, AHEAD_OF_DECODER):
                files, pictures = future.result()
                yield _opened_batch(files, pictures, key)


def _opened_batch(files: Sequence[_File], pictures: Pictures, key: Callable[[str], str]) -> Opened:
    fresh = {file.uri: file.key for file in files if file.key and not key(file.uri)}
    uris = [file.uri for file in files if file.picture is not None]
    return Opened(len(files), uris, pictures, [file.fault for file in files if file.fault], fresh)


def _opened_file(uri: str, key: str, prepare: Callable[[Image], Prepared], stored: Callable[[str], bool]) -> _File:
    """Open and prepare a picture; without one if its content is stored already."""
    try:
        data = None if key else read_content(uri)
        key = key or content_digest(cast(bytes, data))
        return _File(uri, key, None if data is not None and stored(key) else prepare(open_image(uri, data)))
    except BadImage as error:
        return _File(uri, key, fault=error)


def _few_ahead(batches: Iterable[list[str]], start: Callable[[list[str]], Started], depth: int) -> Iterator[Started]:
    """What `start` makes of every batch, started `depth` batches before it is needed."""
    waiting: deque[Started] = deque()
    for batch in batches:
        waiting.append(start(batch))
        if len(waiting) >= depth:
            yield waiting.popleft()
    yield from waiting


class _File(NamedTuple):
    """A file as it was read: its digest, what a decoder takes of it, or why it cannot be read."""

    uri: str
    key: str
    picture: Any = None
    fault: BadImage | None = None


class _ReadingMemory:
    """Room for the files of a few batches, used in turn: fresh memory for every file would cost more than reading."""

    def __init__(self, batches: int) -> None:
        self._arenas = deque(np.empty(0, np.uint8) for _ in range(batches))

    def rooms(self, uris: Sequence[str]) -> list[Bytes]:
        """A place for each file, one byte longer than the file."""
        sizes = [_size(uri) + 1 for uri in uris]
        if len(self._arenas[0]) < sum(sizes):
            self._arenas[0] = np.empty(sum(sizes) * 5 // 4, np.uint8)
        arena = self._arenas[0]
        self._arenas.rotate(-1)
        return np.split(arena[: sum(sizes)], np.cumsum(sizes)[:-1])


def _size(uri: str) -> int:
    """The file's length; 0 for one that is not there, or no plain file."""
    try:
        return os.stat(uri).st_size if is_plain_file(uri) else 0
    except OSError:
        return 0


def _read_into(room: Bytes, uri: str) -> Bytes:
    """The file's bytes, in the room if it is as long as it was."""
    if is_remote(uri) or part_of(uri):
        return np.frombuffer(read_content(uri), np.uint8)
    with open(uri, "rb", buffering=0) as file:
        size = file.readinto(room.data)
    return room[:size] if size == len(room) - 1 else np.fromfile(uri, np.uint8)


def _read_file(uri: str, key: str, room: Bytes, decoder: Decoder, stored: Callable[[str], bool]) -> _File:
    """Read and hash a file; without a picture if its content is stored already."""
    try:
        data = _read_into(room, uri) if is_plain_file(uri) else None
        key = key or content_digest(cast(Bytes, data).data)
        return _File(uri, key, None if stored(key) else decoder.encoded(uri, data))
    except BadImage as error:
        return _File(uri, key, fault=error)
    except OSError as error:
        return _File(uri, key, fault=BadImage(uri, f"cannot be read: {error.strerror}"))
