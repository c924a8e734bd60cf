"""Ray: jobs for worker processes on this machine or on a cluster.

Ray places the workers, starts them where and when there is room, and starts lost ones again. A job whose worker was
lost goes to another worker; one that takes much longer than the others is given to a second worker too, and the first
answer counts. Results come in the order of the jobs. `ray_map` is all of this for a plain function.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from statistics import median
from typing import Any, Generic, NamedTuple, Self, TypeVar

from beholder import __version__
from beholder.core.errors import BeholderError, DataError, MissingExtra, ModelError, UnknownName, UsageError, first_line
from beholder.core.record import machine

Job = TypeVar("Job")
Loaded = TypeVar("Loaded")
Result = TypeVar("Result")
log = logging.getLogger(__name__)

CPUS = 4
"""Cores of a worker that runs a model without a card, if there are so many."""
IN_FLIGHT = 2
"""Jobs that a worker has at a time: the next one is there when one is done."""
AHEAD = 4
"""Jobs per worker that may be handed out beyond the first one without a result: these results are in memory."""
TRIES = 4
"""A job that so many workers died with is given up."""
SLOW, SLOW_SECONDS = 3.0, 10.0
"""A job is given to a second worker after so many times the usual time, and not before so many seconds."""
CONNECT_SECONDS = 10.0
"""How long a cluster may take to answer."""
TELL_SECONDS = 60.0
"""How often a person is told that no worker has a place yet."""


@dataclass(frozen=True)
class RayOptions:
    """Which cluster, and how many workers; none of it moves a score."""

    address: str | None = None
    """`ray://HOST:PORT` or HOST:PORT; None takes the one of RAY_ADDRESS, else the one that runs on this machine,
    else it starts one here. A process that is connected to Ray already stays connected as it is."""
    workers: int | None = None
    """None: one for each card of the cluster; on clusters without cards one for each 4 cores."""
    gpus_per_worker: float | None = None
    """Cards per worker: 0.5 lets two share a card. None: one where the cluster has cards."""

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"The number of Ray workers is {self.workers}; it must be at least 1.")
        if self.gpus_per_worker is not None and self.gpus_per_worker < 0:
            raise UsageError(f"Each Ray worker would have {self.gpus_per_worker} cards; 0 is the least.")


def ray_options(engine: str, workers: int | None = None, gpus_per_worker: float | None = None) -> RayOptions | None:
    """What `--engine` and its two options mean; None is the local engine.

    >>> ray_options("ray://head:10001", 8)
    RayOptions(address='ray://head:10001', workers=8, gpus_per_worker=None)
    """
    if engine.startswith("ray://") or engine == "ray":
        return RayOptions(engine if engine != "ray" else None, workers, gpus_per_worker)
    if engine != "local":
        raise UnknownName("engine", engine, ["local", "ray", "ray://HOST:PORT"])
    if workers is not None or gpus_per_worker is not None:
        raise UsageError("--workers and --gpus-per-worker are for --engine ray.")
    return None


def ray_map(function: Callable[[Job], Result], jobs: Iterable[Job], options: RayOptions) -> Iterator[Result]:
    """What the function makes of every job, in order, by Ray workers of one core each.

    The function and the jobs must be picklable. Jobs are taken as workers become free, so there may be any number.
    """
    with RayPool(partial(_same, function), options, cpus=1, cards=False) as pool:
        yield from pool.map(_call, jobs)


def _same(loaded: Loaded) -> Loaded:
    return loaded


def _call(function: Callable[[Job], Result], job: Job) -> Result:
    return function(job)


def connect(address: str | None = None) -> Any:
    """The library, connected to a cluster; it stays connected until the process ends."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that is started here tells nobody
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # else its messages come in between, on standard output
    try:
        import ray  # an optional dependency
    except ImportError:
        raise MissingExtra("--engine ray", "ray") from None
    if ray.is_initialized():
        return ray
    asked = address or os.environ.get("RAY_ADDRESS")
    quiet = {} if "://" in (asked or "") else {"include_dashboard": False}
    before = signal.getsignal(signal.SIGTERM)
    try:
        _knock(asked or "")
        with warnings.catch_warnings(action="ignore"):  # what they say is said below
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"There is no Ray cluster at {asked or 'this machine'}: {first_line(error)}.\n"
            "Start one with `ray start --head`, or leave the address out: then one is started for this run. A cluster "
            "that asks for a token needs RAY_AUTH_MODE=token and RAY_AUTH_TOKEN."
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray takes it away; SIGTERM is to stop us as Ctrl-C does
    return ray


def _knock(address: str) -> None:
    """Raise if nobody answers at HOST:PORT: Ray itself would try for minutes."""
    if match := re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:(\d+)", address):
        socket.create_connection((match[1], int(match[2])), timeout=CONNECT_SECONDS).close()


class _Fleet(NamedTuple):
    """How many workers, and what each of them takes."""

    workers: int
    cpus: float
    gpus: float


def _fleet(options: RayOptions, nodes: Iterable[dict[str, Any]], cpus: int, *, cards: bool | None) -> _Fleet:
    """`cards` says whether workers need a card; None: if there is one."""
    there = [node["Resources"] for node in nodes if node["Alive"]]
    all_cpus, all_gpus = (sum(node.get(kind, 0) for node in there) for kind in ("CPU", "GPU"))
    gpus = options.gpus_per_worker
    if gpus is None or cards is False:
        gpus = 1.0 if cards or (cards is None and all_gpus) else 0.0
    if gpus:
        fit = sum(int(node.get("GPU", 0) / gpus) for node in there)
        return _Fleet(options.workers or max(1, fit), 1, gpus)
    share = int(all_cpus // options.workers) if options.workers else cpus
    cpus = max(1, min(cpus, share, int(max((node.get("CPU", 0) for node in there), default=1))))
    return _Fleet(options.workers or max(1, sum(int(node.get("CPU", 0)) // cpus for node in there)), cpus, 0.0)


class Started(NamedTuple):
    """A worker's machine, the version of Beholder there, and those of the libraries."""

    machine: str
    version: str
    libraries: dict[str, str]


class _Worker(Generic[Loaded]):
    """In a process of Ray: what is loaded once is there for all jobs."""

    def __init__(self, load: Callable[[], Loaded], folder: str, machine: str) -> None:
        self._load, self._machine = load, machine
        if os.path.isdir(folder):  # names that are relative to it are found where it is shared
            os.chdir(folder)

    @cached_property
    def _loaded(self) -> Loaded:
        return self._load()

    def start(self) -> Started:
        """Load, and say where."""
        self._told(lambda: self._loaded)
        return Started(socket.gethostname(), __version__, machine())

    def run(self, work: Callable[[Loaded, Job], Result], job: Job) -> Result:
        return self._told(lambda: work(self._loaded, job))

    def _told(self, work: Callable[[], Result]) -> Result:
        """The result, or an error of ours in a form that can travel; it names the machine if it is another one."""
        try:
            return work()
        except BeholderError as error:
            kind = next(
                (kind for kind in (DataError, ModelError, UsageError) if isinstance(error, kind)), BeholderError
            )
            here = socket.gethostname()
            raise kind(str(error) + (f"\nThis was on {here}." if here != self._machine else "")) from None


@dataclass(eq=False)
class _Handle:
    """A worker as the driver sees it; what it is working on comes first."""

    actor: Any
    jobs: deque[tuple[Any, int]] = field(default_factory=deque)  # object reference, number of the job
    since: float = 0.0
    worked: bool = False

    def hand(self, reference: Any, number: int) -> None:
        if not self.jobs:
            self.since = time.monotonic()
        self.jobs.append((reference, number))

    def finish(self, reference: Any) -> tuple[int, float]:
        """The number of a job that is done, and the seconds that it took."""
        (entry,) = (entry for entry in self.jobs if entry[0] == reference)
        self.jobs.remove(entry)
        began, self.since = self.since, time.monotonic()
        return entry[1], self.since - began


class RayPool(Generic[Loaded]):
    """Workers that each load something once; a context manager that ends them whatever happens."""

    def __init__(
        self, load: Callable[[], Loaded], options: RayOptions, *, cpus: int = CPUS, cards: bool | None = None
    ) -> None:
        self.ray = connect(options.address)
        self.fleet = _fleet(options, self.ray.nodes(), cpus, cards=cards)
        self._actor = self.ray.remote(_Worker).options(
            num_cpus=self.fleet.cpus, num_gpus=self.fleet.gpus, max_restarts=TRIES - 1, scheduling_strategy="SPREAD"
        )
        self._given = load, os.getcwd(), socket.gethostname()
        self.starting: dict[Any, _Handle] = {}
        self.ready: list[_Handle] = []
        self.machines: dict[str, Started] = {}
        self._told = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        for worker in (*self.starting.values(), *self.ready):
            self.ray.kill(worker.actor)
        self.starting, self.ready = {}, []

    @property
    def alive(self) -> str:
        """How many workers are up, in words."""
        return f"{len(self.ready)} of {self.fleet.workers} workers"

    @property
    def differences(self) -> list[str]:
        """Libraries of which the workers' machines have different versions, in words."""
        names = sorted({name for there in self.machines.values() for name in there.libraries})
        versions = {name: {there.libraries.get(name, "none") for there in self.machines.values()} for name in names}
        return [
            f"Ray's machines have different versions of {name}: {', '.join(sorted(found))}"
            for name, found in versions.items()
            if len(found) > 1
        ]

    def map(
        self,
        work: Callable[[Loaded, Job], Result],
        jobs: Iterable[Job],
        *,
        workers: int | None = None,
        described: Callable[[Job], str] = repr,
    ) -> Iterator[Result]:
        """The result of every job, in order; finished results come before any error.

        `workers` are enough for these jobs if there are not more already; `described` names a job in a message.
        """
        for _ in range((workers or self.fleet.workers) - len(self.ready) - len(self.starting)):
            self.start(self._new())
        return _Round(self, self.ray.put(work), jobs, described).results()

    def _new(self) -> _Handle:
        return _Handle(self._actor.remote(*self._given))

    def start(self, worker: _Handle) -> None:
        """Ask a worker to load. Ray does that when the worker has a place, and again if it dies meanwhile."""
        self.starting[worker.actor.start.options(max_task_retries=-1).remote()] = worker

    def started(self, reference: Any) -> None:
        """A worker has loaded, or Ray has given it up; one that has worked before is replaced."""
        worker = self.starting.pop(reference)
        try:
            there: Started = self.answer(reference)
        except self.ray.exceptions.RayActorError as error:
            if worker.worked:
                self.start(self._new())
                return
            if not self.ready and not self.starting:
                raise ModelError(
                    f"The Ray workers die while they start: {first_line(error)}\n"
                    "Memory may be too small for the model, or Beholder is not installed on their machines."
                ) from error
            log.warning("A Ray worker dies whenever it starts. The run goes on without it.")
            return
        if there.version != __version__:
            raise UsageError(
                f"Beholder is {__version__} here and {there.version} on {there.machine}. Install the same version."
            )
        self.machines[there.machine], worker.worked = there, True
        self.ready.append(worker)

    def lost(self, worker: _Handle) -> None:
        """A worker has died; Ray starts it again."""
        self.ready.remove(worker)
        worker.jobs.clear()
        self.start(worker)

    def answer(self, reference: Any) -> Any:
        """What a worker answers; an error of ours as it was raised there."""
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, BeholderError):
                raise error.cause from None
            raise

    def tell_if_waiting(self) -> None:
        """Say now and then that no worker is up yet: the cluster may be full, or lack what is asked for."""
        if self.ready or time.monotonic() - self._told < TELL_SECONDS:
            return
        self._told = time.monotonic()
        total, free = self.ray.cluster_resources(), self.ray.available_resources()
        log.warning(
            "No Ray worker is up yet; one may still be loading. Each needs %g cores and %g cards; the cluster has "
            "%g and %g, of which %g and %g are free.",
            *(self.fleet.cpus, self.fleet.gpus),
            *(resources.get(kind, 0) for resources in (total, free) for kind in ("CPU", "GPU")),
        )


class _Round(Generic[Job, Result]):
    """One list of jobs on its way through a pool."""

    def __init__(self, pool: RayPool[Any], work: Any, jobs: Iterable[Job], described: Callable[[Job], str]) -> None:
        self._pool, self._work, self._coming, self._described = pool, work, enumerate(jobs), described
        self._next = 0  # the job whose result is given next
        self._waiting: deque[int] = deque()
        self._unfinished: dict[int, Job] = {}
        self._done: dict[int, Result] = {}
        self._deaths = Counter[int]()
        self._seconds: deque[float] = deque(maxlen=64)

    def results(self) -> Iterator[Result]:
        for worker in self._pool.ready:
            worker.jobs.clear()  # what an earlier round no longer waits for
        try:
            while self._hand_out():
                if self._next in self._done:
                    self._next += 1
                    yield self._done.pop(self._next - 1)
                else:
                    self._wait()
        except GeneratorExit:
            raise
        except BaseException:
            for number in sorted(self._done):
                yield self._done[number]
            raise

    def _hand_out(self) -> bool:
        """Keep every worker busy; whether any result is still to come."""
        ahead = AHEAD * self._pool.fleet.workers - len(self._unfinished) - len(self._done)
        new = dict(islice(self._coming, max(0, ahead)))
        self._unfinished.update(new)
        self._waiting.extend(new)
        for depth in range(IN_FLIGHT):
            for worker in self._pool.ready:
                if len(worker.jobs) == depth and (number := self._number(idle=not depth)) is not None:
                    worker.hand(worker.actor.run.remote(self._work, self._unfinished[number]), number)
        return bool(self._unfinished or self._done)

    def _number(self, *, idle: bool) -> int | None:
        """The job to hand out next; to a worker that has nothing to do, one that is slow elsewhere."""
        while self._waiting:
            first = self._waiting.popleft()
            if first in self._unfinished:  # a second worker may have finished what the first one lost
                return first
        if not idle or not self._seconds:
            return None
        limit = max(SLOW_SECONDS, SLOW * median(self._seconds))
        slow = [worker for worker in self._pool.ready if worker.jobs and time.monotonic() - worker.since > limit]
        given = Counter(number for worker in self._pool.ready for _, number in worker.jobs)
        theirs = [number for worker in slow for _, number in worker.jobs if number in self._unfinished]
        return min((number for number in theirs if given[number] == 1), default=None)

    def _wait(self) -> None:
        """Until something happens, but for a second at most."""
        pool = self._pool
        busy = {reference: worker for worker in pool.ready for reference, _ in worker.jobs}
        happened, _ = pool.ray.wait([*pool.starting, *busy], timeout=1.0)
        if not happened:
            pool.tell_if_waiting()
        elif happened[0] in pool.starting:
            pool.started(happened[0])
        else:
            self._answered(busy[happened[0]], happened[0])

    def _answered(self, worker: _Handle, reference: Any) -> None:
        try:
            result = self._pool.answer(reference)
        except self._pool.ray.exceptions.RayActorError as error:
            self._lost(worker, error)
            return
        number, seconds = worker.finish(reference)
        self._seconds.append(seconds)
        if number in self._unfinished:  # else another worker that had it too was first
            del self._unfinished[number]
            self._done[number] = result

    def _lost(self, worker: _Handle, error: Exception) -> None:
        """Give the jobs of a worker that died to others; what it was working on may be what killed it."""
        first = worker.jobs[0][1]
        self._deaths[first] += 1
        if self._deaths[first] >= TRIES and first in self._unfinished:
            raise DataError(
                f"{TRIES} Ray workers died while they had:\n{self._described(self._unfinished[first])}\n"
                "Memory may have run out, or one of these ends the process. "
                "What was finished is kept: the same command continues there."
            ) from error
        self._waiting.extendleft(number for _, number in reversed(worker.jobs))
        self._pool.lost(worker)
