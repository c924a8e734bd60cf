"""Executors: jobs that threads, processes or Ray (`ray_pool.py`) do, with the results in the order of the jobs.

Starting processes takes about a second, so that short jobs are left to threads. A process that dies or hangs ends the
run with a message; what was scored before is in the store, and the same command goes on from there.
"""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.forkserver import ensure_running
from selectors import EVENT_READ, DefaultSelector
from socket import socketpair
from typing import Self, TypeVar

from beholder.core.errors import DataError
from beholder.core.types import Entry

Job = TypeVar("Job")
Result = TypeVar("Result")
Start = Callable[[], None]
STUCK_SECONDS = 600.0  # after so long without an answer a process is taken to hang
NAMED = 20  # things that a message names
STARTING = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
"""A fresh process that has imported what workers need starts all of them; one by one they would take a second."""
STARTING.set_forkserver_preload(["beholder.scores.reading"])


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(jobs: Iterable[Job], begin: Callable[[Job], Callable[[], Result]], *, ahead: int) -> Iterator[Result]:
    """Results in the order of the jobs, started so far ahead; an error of the jobs comes after earlier results."""
    coming, waiting, end = iter(jobs), deque[Callable[[], Result]](), None
    while True:
        while end is None and len(waiting) <= ahead:
            try:
                job = next(coming)
            except Exception as error:
                end = error
            else:
                waiting.append(begin(job))
        if waiting:
            yield waiting.popleft()()
        elif isinstance(end, StopIteration):
            return
        elif end:
            raise end


def listed(names: Sequence[object]) -> str:
    """The first of them, a line each."""
    more = [f"… and {len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return "\n".join(f"  {name}" for name in [*names[:NAMED], *more])


class Executor:
    """Does jobs, in threads of this process; a context manager that ends its workers whatever happens."""

    def __init__(self, count: int, pool: ProcessPoolExecutor | None = None) -> None:
        self.count, self._pool = count, pool or ThreadPoolExecutor(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(kill=error is not None)

    def close(self, *, kill: bool = False) -> None:
        """Wait for what is being done; the rest is not started. `kill` does not wait for processes."""
        self._pool.shutdown(cancel_futures=True)

    def submit(self, work: Callable[..., Result], *arguments: object) -> Future[Result]:
        return self._pool.submit(work, *arguments)

    def result(self, future: Future[Result], names: Sequence[object] = ()) -> Result:
        """The answer to a job, which is about the things with these names."""
        return future.result()

    def map(
        self,
        work: Callable[[Job], Result],
        jobs: Iterable[Job],
        *,
        ahead: int | None = None,
        names: Callable[[Job], Sequence[object]] = lambda job: [job],
    ) -> Iterator[Result]:
        """The result of every job, in order; `names` says what a job is about, for messages."""
        ahead = 3 * self.count if ahead is None else ahead
        return in_order(jobs, lambda job: partial(self.result, self.submit(work, job), names(job)), ahead=ahead)


class Processes(Executor):
    """Processes of this machine, started with the first job; what they are given must be picklable."""

    def __init__(
        self, count: int, *, does: str = "reads images", patience: float | None = None, start: Start | None = None
    ) -> None:
        """`does` is for messages; after `patience` seconds without an answer one hangs; each calls `start` first."""
        given = dict(os.environ), start
        pool = ProcessPoolExecutor(count, mp_context=STARTING, initializer=_start_worker, initargs=given)
        super().__init__(count, pool)
        self._does, self._patience = does, patience
        # Answers ring a bell, and a selector waits for it: a lock would wait until a time of day, which can jump.
        self._bell, self._ring = socketpair()
        self._ring.setblocking(False)
        self._selector = DefaultSelector()
        self._selector.register(self._bell, EVENT_READ)

    def close(self, *, kill: bool = False) -> None:
        """End all workers; `kill` does not wait for what they are doing."""
        workers = list((getattr(self._pool, "_processes", None) or {}).values())  # 3.14 has terminate_workers for this
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

    def submit(self, work: Callable[..., Result], *arguments: object) -> Future[Result]:
        try:
            with _plain_start():
                future = super().submit(work, *arguments)
        except BrokenProcessPool as error:
            raise self._died(()) from error
        future.add_done_callback(self._answered)
        return future

    def _answered(self, future: Future[Result]) -> None:
        with suppress(OSError):  # it rings already, or nobody waits any more
            self._ring.send(b".")

    def result(self, future: Future[Result], names: Sequence[object] = ()) -> Result:
        """The answer to a job; an error if its process died, or if for long no process answered."""
        while not future.done():
            patience = self._patience or STUCK_SECONDS
            if not self._selector.select(patience):
                raise DataError(
                    f"A process that {self._does} has not answered for {patience:,.0f} s. "
                    f"It was given:\n{listed(names)}\n"
                    "Can these files be read, or does their drive not answer? What was scored so far is kept: "
                    "the same command continues there."
                )
            self._bell.recv(4096)
        try:
            return future.result()
        except BrokenProcessPool as error:
            raise self._died(names) from error

    def _died(self, names: Sequence[object]) -> DataError:
        return DataError(
            f"A process that {self._does} died"
            + (f" while it was given:\n{listed(names)}\n" if names else ".\n")
            + "Memory may have run out, or someone stopped it. What was scored so far is kept: "
            "the same command continues there."
        )


def prepare_to_start() -> None:
    """Processes will be wanted soon: start the one that starts them, which takes a moment."""
    if STARTING.get_start_method() == "forkserver":
        with _plain_start():
            ensure_running()


@contextmanager
def _plain_start() -> Iterator[None]:
    """New processes do not run the user's script again, which may lack its `if __name__ == "__main__"`."""
    os.environ.setdefault("PILLOW_BLOCKS_MAX", "4")  # fresh memory for each picture can cost as much as decoding it
    main = sys.modules["__main__"]
    kept: Entry = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(kept)


def _start_worker(environment: dict[str, str], start: Start | None) -> None:
    """In a worker: Ctrl-C is the main process's business, and a worker does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()  # of the process that starts workers, maybe long ago
    os.environ.update(environment)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if start:
        start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
