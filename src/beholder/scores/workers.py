"""Worker processes that hash, open and cut pictures while the model works.

They write pictures into memory that they share with the main process; only addresses and short answers travel. Starting
them takes about a second, so that short jobs are left to threads. A worker that dies or hangs ends the run with a
message; what was scored before is in the store, and the same command goes on from there.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.forkserver import ensure_running
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from socket import socketpair
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from beholder.core.digests import content_digest
from beholder.core.errors import BadImage, DataError
from beholder.datasets.content import read_content
from beholder.datasets.images import open_image
from beholder.models.preparation import Array, Preparation

Item = TypeVar("Item")
Result = TypeVar("Result")
PER_JOB = 8
"""Pictures in one job: few enough that all workers are busy, enough that the handing out costs nothing."""
SPAN = 64
"""Small batches are read this many pictures at a time."""
AHEAD = 2
"""How many spans are read while another is with the model."""
ATTACHED = 16
"""Pieces of shared memory that a worker keeps at hand."""
STUCK_SECONDS = 600.0
"""After so long without an answer a worker is taken to hang."""
SHARED = Path("/dev/shm")
STARTING = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
"""A fresh process that has imported what workers need starts all of them; one by one they would take a second."""
STARTING.set_forkserver_preload([__name__])


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _nothing() -> None:
    """All that a plain worker does when it starts."""


class Slab(NamedTuple):
    """A piece of shared memory as an array, by name."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def array(self, memory: SharedMemory) -> Array:
        return np.ndarray(self.shape, self.dtype, buffer=memory.buf)


class Answer(NamedTuple):
    """What became of a picture: what was wrong with it, and its file's digest if it was hashed."""

    fault: BadImage | None
    key: str


class Workers:
    """A pool of processes, started with the first job; a context manager that ends them whatever happens."""

    does = "reads images"
    """For messages."""

    def __init__(self, count: int, start: Callable[..., None] = _nothing, arguments: tuple[Any, ...] = ()) -> None:
        self.count = count
        self._pool = ProcessPoolExecutor(
            count, mp_context=STARTING, initializer=_start_worker, initargs=(start, arguments, dict(os.environ))
        )
        # Answers ring a bell, and a selector waits for it: a lock would wait until a time of day, which can jump.
        self._bell, self._ring = socketpair()
        self._ring.setblocking(False)
        self._selector = DefaultSelector()
        self._selector.register(self._bell, EVENT_READ)

    @property
    def patience(self) -> float:
        """Seconds without an answer after which a process is taken to hang."""
        return STUCK_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(kill=error is not None)

    def close(self, *, kill: bool = False) -> None:
        """End all workers; `kill` does not wait for what they are doing."""
        workers = list((self._pool._processes or {}).values())  # Python 3.14 has terminate_workers for this
        self._pool.shutdown(wait=not kill, cancel_futures=True)
        if kill:
            for worker in workers:
                worker.kill()
                worker.join()
        for part in (self._selector, self._bell, self._ring):
            part.close()

    def dismiss(self) -> None:
        """Let all workers end, without waiting for it."""
        self._pool.shutdown(wait=False)

    def map(
        self, work: Callable[[list[Item]], list[Result]], items: Sequence[Item], *, per_job: int
    ) -> Iterator[Result]:
        """The result for every item, in order, a few jobs ahead; `work` takes and gives lists."""
        jobs = (list(items[start : start + per_job]) for start in range(0, len(items), per_job))
        waiting: deque[tuple[list[Item], Future[list[Result]]]] = deque()
        while True:
            while len(waiting) < 3 * self.count and (job := next(jobs, None)):
                waiting.append((job, self.submit(work, job)))
            if not waiting:
                return
            job, future = waiting.popleft()
            yield from self.result(future, job)

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Hand out one job."""
        try:
            with _plain_start():
                future = self._pool.submit(work, *arguments)
        except BrokenProcessPool as error:
            raise self._died([]) from error
        future.add_done_callback(self._answered)
        return future

    def _answered(self, future: Future[Result]) -> None:
        with suppress(OSError):  # it rings already, or nobody waits any more
            self._ring.send(b".")

    def result(self, future: Future[Result], job: Sequence[object]) -> Result:
        """What a worker answers; an error if it died, or if for long no worker answered."""
        while not future.done():
            if not self._selector.select(self.patience):
                raise DataError(
                    f"A process that {self.does} has not answered for {self.patience:,.0f} s. "
                    f"It was given:\n{_listed(job)}\n"
                    "Can these files be read, or does their drive not answer? What was scored so far is kept: "
                    "the same command continues there."
                )
            self._bell.recv(4096)
        try:
            return future.result()
        except BrokenProcessPool as error:
            raise self._died(job) from error

    def _died(self, job: Sequence[object]) -> DataError:
        return DataError(
            f"A process that {self.does} died"
            + (f" while it was given:\n{_listed(job)}\n" if job else ".\n")
            + "Memory may have run out, or someone stopped it. What was scored so far is kept: "
            "the same command continues there."
        )


class PictureReader:
    """Batches of pictures, cut by workers into shared memory, read a few spans ahead."""

    def __init__(
        self, workers: Workers, preparation: Preparation, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._workers, self._preparation = workers, preparation
        self._shape, self._dtype = shape, dtype

    def read(
        self, batches: Sequence[list[str]], hashed: Callable[[str], bool] = lambda uri: True
    ) -> Iterator[tuple[list[str], Array, list[Answer]]]:
        """Each batch with its rows and what became of each picture; the rows last until the next batch.

        Plain files that are not `hashed` are hashed on the way.
        """
        rows = max(SPAN, max(map(len, batches)))
        spans = _spans(batches, rows)
        shape = (AHEAD + 1, rows, *self._shape)
        memory = SharedMemory(create=True, size=int(np.prod(shape)) * self._dtype.itemsize)
        try:
            slab = Slab(memory.name, shape, self._dtype.str)
            yield from self._read(spans, slab, slab.array(memory), hashed)
        finally:
            give_back(memory)

    def _read(
        self, spans: Iterator[list[list[str]]], slab: Slab, array: Array, hashed: Callable[[str], bool]
    ) -> Iterator[tuple[list[str], Array, list[Answer]]]:
        places = deque(range(AHEAD + 1))
        waiting: deque[tuple[int, list[list[str]], list[Future[list[Answer]]]]] = deque()
        while True:
            while places and (span := next(spans, None)):
                place = places.popleft()
                waiting.append((place, span, self._hand_out(span, slab, place, hashed)))
            if not waiting:
                return
            place, span, futures = waiting.popleft()
            uris = [uri for batch in span for uri in batch]
            jobs = [uris[start : start + PER_JOB] for start in range(0, len(uris), PER_JOB)]
            answers = [
                answer
                for future, job in zip(futures, jobs, strict=True)
                for answer in self._workers.result(future, job)
            ]
            start = 0
            for batch in span:
                stop = start + len(batch)
                yield batch, array[place, start:stop], answers[start:stop]
                start = stop
            places.append(place)

    def _hand_out(
        self, span: list[list[str]], slab: Slab, place: int, hashed: Callable[[str], bool]
    ) -> list[Future[list[Answer]]]:
        asked = [(uri, not hashed(uri)) for batch in span for uri in batch]
        return [
            self._workers.submit(_cut_into, slab, (place, start), asked[start : start + PER_JOB], self._preparation)
            for start in range(0, len(asked), PER_JOB)
        ]


def pictures_fit(batch: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether there is shared memory for reading such pictures ahead."""
    return fits((AHEAD + 1) * max(SPAN, batch) * int(np.prod(shape)) * dtype.itemsize)


def fits(size: int) -> bool:
    """Whether there is room; a container often has 64 MB, and writing beyond ends the process without a word."""
    return not SHARED.is_dir() or size < 0.9 * shutil.disk_usage(SHARED).free


def give_back(memory: SharedMemory) -> None:
    """To the system, even while something here still looks at it."""
    memory.unlink()
    try:
        memory.close()
    except BufferError:  # an error's traceback may still hold the last rows; they go with it
        memory.close = lambda: None  # type: ignore[method-assign]  # else it would complain when collected


def _spans(batches: Sequence[list[str]], rows: int) -> Iterator[list[list[str]]]:
    """Consecutive batches, together at most `rows` pictures."""
    span: list[list[str]] = []
    for batch in batches:
        if span and sum(map(len, span)) + len(batch) > rows:
            yield span
            span = []
        span.append(batch)
    if span:
        yield span


@contextmanager
def _plain_start() -> Iterator[None]:
    """New processes do not run the user's script again, which may lack its `if __name__ == "__main__"`.

    And Pillow keeps memory for the next picture there: fresh memory for each can cost as much as decoding.
    """
    os.environ.setdefault("PILLOW_BLOCKS_MAX", "4")
    main = sys.modules["__main__"]
    kept: dict[str, Any] = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(kept)


_attached: dict[str, SharedMemory] = {}


def prepare_to_start() -> None:
    """Workers will be wanted soon: start the process that starts them, which takes a moment."""
    if STARTING.get_start_method() == "forkserver":
        with _plain_start():
            ensure_running()


def _start_worker(start: Callable[..., None], arguments: tuple[Any, ...], environment: dict[str, str]) -> None:
    """In a worker: Ctrl-C is the main process's business, and a worker does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()  # of the process that starts workers, maybe long ago
    os.environ.update(environment)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    start(*arguments)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _cut_into(
    slab: Slab, corner: tuple[int, int], asked: Sequence[tuple[str, bool]], preparation: Preparation
) -> list[Answer]:
    """In a worker: open the pictures and write what the preparation makes of them into the slab's rows."""
    place, start = corner
    rows = attached(slab)[place]
    return [_cut_one(rows, start + row, uri, fresh, preparation) for row, (uri, fresh) in enumerate(asked)]


def attached(slab: Slab) -> Array:
    """In a worker: the main process's memory."""
    if slab.name not in _attached:
        if len(_attached) == ATTACHED:
            _attached.pop(next(iter(_attached))).close()
        _attached[slab.name] = SharedMemory(slab.name)
    return slab.array(_attached[slab.name])


def _cut_one(rows: Array, row: int, uri: str, fresh: bool, preparation: Preparation) -> Answer:
    key = ""
    try:
        data = read_content(uri) if fresh else None
        key = content_digest(data) if data is not None else key
        rows[row] = preparation(open_image(uri, data))
    except BadImage as error:
        return Answer(error, key)
    return Answer(None, key)


def _listed(job: Sequence[object]) -> str:
    return "\n".join(f"  {item}" for item in job[:PER_JOB])
