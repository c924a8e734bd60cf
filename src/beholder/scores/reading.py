"""Reading ahead: batches of images are opened and prepared while the model works on the batch before.

Where there are many files and the preparation can travel, worker processes do it (`executor.py`), and write the
pictures into memory that they share with the main process. A scorer with a decoder is handed whole files. All else is
done in threads.
"""

import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from PIL.Image import Image

from beholder.core.digests import content_digest
from beholder.core.errors import BadImage, BeholderError, first_line
from beholder.datasets.content import is_remote, part_of, read_content
from beholder.datasets.images import DRAWN, is_plain_file, open_image
from beholder.models.preparation import Jpeg, Preparation, fixed_shape
from beholder.models.scorer import Prepared, Scorer
from beholder.scores.executor import Executor, Processes, in_order, usable_cores

if TYPE_CHECKING:  # worker processes start without torch
    from beholder.models.contrastive.gpu_decoder import GpuDecoder

Bytes = npt.NDArray[np.uint8]
Stored = Callable[[Sequence[str]], npt.NDArray[np.bool_]]  # which of these contents are stored already
Pictures = Any  # a list of prepared pictures, or an array with a row for each
PER_JOB = 8  # pictures: few enough that all workers are busy, enough that the handing out costs nothing
PICTURES_AHEAD = 128  # so many pictures are read while a batch is with the model,
AHEAD, MOST_AHEAD = 2, 12  # in so many batches
ATTACHED = 16  # pieces of shared memory that a worker keeps at hand
FILE_THREADS = 6  # for a decoder; more would only take Python's lock from the threads at the GPU
PROCESSES_FROM = 512  # fewer files than this are done in threads before processes would have started
SHARED = Path("/dev/shm")


@dataclass(frozen=True)
class ReadOptions:
    """How images are opened; moves no score."""

    threads: int = field(default_factory=lambda: min(8, (os.cpu_count() or 2) + 1))  # threads that open images
    processes: int = field(default_factory=usable_cores)
    """Processes that open images instead where there are many files; 0 for none."""


class WorkersOnDemand(ExitStack):
    """The worker processes of one filling, started when the work is first worth it."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__()
        self._count = options.processes

    def dismiss(self) -> None:
        """No more files are opened: processes end while other work goes on."""
        if "started" in vars(self):
            self.started.dismiss()

    def worth_starting(self, files: int) -> bool:
        """Whether so many files are done sooner with processes than without."""
        return self._count > 0 and files >= PROCESSES_FROM

    @cached_property
    def started(self) -> Processes:
        """The processes, started now if they were not."""
        return self.enter_context(Processes(self._count))


def nothing_stored(keys: Sequence[str]) -> npt.NDArray[np.bool_]:
    """All is to be read."""
    return np.zeros(len(keys), dtype=bool)


class File(NamedTuple):
    """A file as it was read: its digest, what is made of it, or why it cannot be read."""

    uri: str
    key: str
    picture: Any = None
    fault: BadImage | None = None


# How a picture is made of a file; if this can travel, in a worker process too. `size` is how many bytes of memory it
# needs for a file. `make` reads a file, and hashes it unless it has a key; what is written into the room need not
# travel. `pictures` are those of a batch that could be made, for the model or for its decoder.


@dataclass(frozen=True)
class Opening:
    """Whatever the scorer prepares, unless it is `stored`."""

    prepare: Callable[[Image], Prepared]
    stored: Stored

    def size(self, uri: str) -> int:
        return 0

    def make(self, uri: str, key: str, room: Bytes) -> File:
        data = None if key else read_content(uri)
        key = content_digest(data) if data is not None else key
        stored = data is not None and self.stored([key])[0]
        return File(uri, key, None if stored else self._prepared(_seen(self.prepare, uri, data), uri))

    def _prepared(self, image: Image, uri: str) -> Prepared:
        try:
            return self.prepare(image)
        except (BeholderError, MemoryError):
            raise
        except Exception as error:  # a processor's own limits: how narrow a picture may be, for one
            raise BadImage(uri, f"the model's own preprocessing cannot take it: {first_line(error)}") from error

    def pictures(self, files: Sequence[File], memory: Bytes) -> Pictures:
        return [file.picture for file in files if file.picture is not None]


@dataclass(frozen=True)
class _Cutting:
    """Arrays of one shape: those of a batch are one array."""

    preparation: Preparation
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def size(self, uri: str) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def make(self, uri: str, key: str, room: Bytes) -> File:
        data = None if key else read_content(uri)
        key = content_digest(data) if data is not None else key
        room.view(self.dtype).reshape(self.shape)[...] = self.preparation(_seen(self.preparation, uri, data))
        return File(uri, key, _InRoom())

    def pictures(self, files: Sequence[File], memory: Bytes) -> Pictures:
        rows = memory.view(self.dtype).reshape(len(files), *self.shape)
        good = [row for row, file in enumerate(files) if file.picture is not None]
        return rows if len(good) == len(files) else rows[good]


class _InRoom(NamedTuple):
    """Stands for what a decoder takes, whose bytes begin the file's room."""

    size: int = 0
    pixels: int = 0
    start: int = 0  # of the room


@dataclass(frozen=True)
class _Encoding:
    encoding: Callable[[str, Bytes | None], Any]

    def size(self, uri: str) -> int:
        """The file's length and one byte more; 1 for one that is not there, or no plain file."""
        try:
            return os.stat(uri).st_size + 1 if is_plain_file(uri) else 1
        except OSError:
            return 1

    def make(self, uri: str, key: str, room: Bytes) -> File:
        data = _read_into(room, uri) if is_plain_file(uri) else None
        key = key or content_digest(data.data if data is not None else b"")
        picture = self.encoding(uri, data)
        if isinstance(picture, Jpeg) and np.may_share_memory(picture.data, room):
            picture = _InRoom(len(picture.data), picture.pixels)
        return File(uri, key, picture)

    def pictures(self, files: Sequence[File], memory: Bytes) -> Pictures:
        return [
            Jpeg(file.uri, memory[each.start : each.start + each.size], each.pixels)
            if isinstance(each := file.picture, _InRoom)
            else each
            for file in files
            if file.picture is not None
        ]


def _seen(prepare: Callable[[Image], Prepared], uri: str, data: bytes | None) -> Image:
    """The picture as `prepare` wants it: in RGB, or a transparent one as it is."""
    return open_image(uri, data, alpha=getattr(prepare, "keeps_alpha", False))


Making = Opening | _Cutting | _Encoding


def _read_into(room: Bytes, uri: str) -> Bytes:
    """The file's bytes, in the room if it is as long as it was."""
    if is_remote(uri) or part_of(uri):
        return np.frombuffer(read_content(uri), np.uint8)
    try:
        with open(uri, "rb", buffering=0) as file:
            size = file.readinto(room.data)
        return room[:size] if size == len(room) - 1 else np.fromfile(uri, np.uint8)
    except OSError as error:
        raise BadImage(uri, f"cannot be read: {error.strerror}") from error


# Memory

_attached: dict[str, SharedMemory] = {}


class _Rooms:
    """Memory for some batches at a time: that which was used longest ago is used again; made larger where need be."""

    def __init__(self, batches: int, *, shared: bool) -> None:
        self._shared = shared
        self._memories: deque[SharedMemory | Bytes | None] = deque([None] * batches)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for memory in self._memories:
            _give_back(memory)

    def take(self, size: int) -> tuple[Bytes, Bytes | str]:
        memory = self._memories.popleft()
        if memory is None or memory.size < size:
            _give_back(memory)
            larger = size * 5 // 4
            memory = SharedMemory(create=True, size=larger) if self._shared else np.empty(larger, np.uint8)
        self._memories.append(memory)
        if isinstance(memory, SharedMemory):
            return np.ndarray(size, np.uint8, memory.buf), memory.name
        return memory[:size], memory


def _give_back(memory: SharedMemory | Bytes | None) -> None:
    """To the system, even while something here still looks at it."""
    if isinstance(memory, SharedMemory):
        memory.unlink()
        try:
            memory.close()
        except BufferError:  # an error's traceback may still hold the last rows; they go with it
            memory.close = lambda: None  # type: ignore[method-assign]  # else it would complain when collected


def _attach(name: str) -> Bytes:
    """In a worker: the main process's memory."""
    if name not in _attached:
        if len(_attached) == ATTACHED:
            _attached.pop(next(iter(_attached))).close()
        _attached[name] = SharedMemory(name)
    return np.ndarray(_attached[name].size, np.uint8, _attached[name].buf)


def fits(size: int) -> bool:
    """Whether there is room; a container often has 64 MB, and writing beyond ends the process without a word."""
    return not SHARED.is_dir() or size < 0.9 * shutil.disk_usage(SHARED).free


def _make(given: Bytes | str, asked: Sequence[tuple[str, str, int, int]], making: Making) -> list[File]:
    """In a thread or a worker: what is made of some files, each with its key and its place in the memory."""
    memory, files = _attach(given) if isinstance(given, str) else given, []
    for uri, key, start, size in asked:
        try:
            file = making.make(uri, key, memory[start : start + size])
        except BadImage as error:
            file = File(uri, key, fault=error)
        in_room = isinstance(file.picture, _InRoom)
        files.append(file._replace(picture=file.picture._replace(start=start)) if in_room else file)
    return files


# Reading ahead


class Opened(NamedTuple):
    """The images of a batch that could be read, with their pictures, which last until the next batch."""

    size: int
    uris: list[str]
    pictures: Pictures
    faults: list[BadImage]
    digests: dict[str, str]  # of the files that were not hashed before


@dataclass(frozen=True)
class _Reading:
    """Hands batches out and waits for them, in one thread."""

    executor: Executor
    making: Making
    rooms: _Rooms
    per_job: int
    key: Callable[[str], str]
    stored: Stored

    def begin(self, batch: list[str]) -> Callable[[], Opened]:
        sizes, keys = list(map(self.making.size, batch)), list(map(self.key, batch))
        memory, given = self.rooms.take(sum(sizes))
        asked = list(zip(batch, keys, accumulate(sizes[:-1], initial=0), sizes, strict=True))
        parts = [asked[start : start + self.per_job] for start in range(0, len(asked), self.per_job)]
        jobs = [(self.executor.submit(_make, given, part, self.making), [uri for uri, *_ in part]) for part in parts]
        return partial(self._finish, keys, memory, jobs)

    def _finish(self, keys: list[str], memory: Bytes, jobs: list[tuple[Future[list[File]], list[str]]]) -> Opened:
        """Wait for its files; those that were hashed only now may be stored under another name."""
        files = [file for future, uris in jobs for file in self.executor.result(future, uris)]
        new = {file.uri: file.key for file, key in zip(files, keys, strict=True) if file.key and not key}
        stored = dict(zip(new, self.stored(list(new.values())), strict=True))
        files = [file._replace(picture=None) if stored.get(file.uri) else file for file in files]
        uris = [file.uri for file in files if file.picture is not None]
        faults = [file.fault for file in files if file.fault]
        return Opened(len(files), uris, self.making.pictures(files, memory), faults, new)


class Reader:
    """Opens batches of images for one scorer."""

    def __init__(self, scorer: Scorer, options: ReadOptions, workers: WorkersOnDemand) -> None:
        self._scorer, self._options, self._workers = scorer, options, workers
        self._decoder: GpuDecoder | None = getattr(scorer, "decoder", None)
        self._preparation: Preparation | None = getattr(scorer, "preparation", None)  # None: by `prepare`, in threads

    def read(self, batches: Sequence[list[str]], key: Callable[[str], str], stored: Stored) -> Iterator[Opened]:
        """Batch after batch, in order. Files without a key are hashed; those that are `stored` are left out then."""
        largest = max(batches, key=len)
        ahead = max(AHEAD, min(MOST_AHEAD, -(-PICTURES_AHEAD // len(largest))))
        together = ahead + 1 + (AHEAD + 1 if self._decoder else 0)
        making = self._travelling()
        with ExitStack() as stack:
            if making and self._processes_fit(making, batches, largest, together):
                executor: Executor = self._workers.started
            else:
                executor = stack.enter_context(Executor(FILE_THREADS if self._decoder else self._options.threads))
                if not (making and self._decoder):
                    making = Opening(self._preparation or self._scorer.prepare, stored)
            rooms = stack.enter_context(_Rooms(together, shared=isinstance(executor, Processes)))
            per_job = 1 if isinstance(making, Opening) else PER_JOB
            reading = _Reading(executor, making, rooms, per_job, key, stored)
            opened = in_order(batches, reading.begin, ahead=ahead)
            if self._decoder:  # two threads decode batches on the device while the model works
                opened = stack.enter_context(Executor(2)).map(self._decoded, opened, ahead=AHEAD)
            yield from opened

    def _travelling(self) -> Making | None:
        """What worker processes can do for this scorer, if anything."""
        if self._decoder:
            return _Encoding(self._decoder.encoding)
        if self._preparation is None or type(self._preparation).__module__ == "__main__":
            return None  # workers do not know the user's script
        kind = fixed_shape(self._preparation)
        return _Cutting(self._preparation, *kind) if kind else None

    def _processes_fit(self, making: Making, batches: Sequence[list[str]], largest: list[str], together: int) -> bool:
        """Whether worker processes are worth starting, and there is memory to share with them."""
        files = sum(not uri.startswith(DRAWN) for batch in batches for uri in batch)
        spare = 2 if self._decoder else 1  # files of other batches may be longer
        return self._workers.worth_starting(files) and fits(spare * together * sum(map(making.size, largest)))

    def _decoded(self, opened: Opened) -> Opened:
        assert self._decoder
        return opened._replace(pictures=self._decoder.decode(opened.pictures) if opened.uris else [])
