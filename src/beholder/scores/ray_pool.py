"""Ray: jobs for worker processes on this machine or on a cluster.

Ray places the workers, starts them where and when there is room, and starts lost ones again. A job whose worker was
lost goes to another worker; one that takes much longer than the others is given to a second worker too, and the first
answer counts. Results come in the order of the jobs. `ray_map` is all of this for a plain function.
"""

import logging
import os
import re
import signal
import socket
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from statistics import median
from typing import Any, Generic, NamedTuple, Self, TypeVar

from beholder import __version__
from beholder.core.errors import BeholderError, DataError, MissingExtra, ModelError, UnknownName, UsageError, first_line
from beholder.core.record import machine
from beholder.core.types import Entry
from beholder.scores.executor import listed

Job = TypeVar("Job")
Loaded = TypeVar("Loaded")
Result = TypeVar("Result")
Handle = Any  # what Ray gives for a worker, and for an answer to come
log = logging.getLogger(__name__)

CPUS = 4  # cores of a worker that runs a model without a GPU, if there are so many
AHEAD = 4  # jobs per worker handed out beyond the first one without a result: these results are in memory
TRIES = 4  # a job that so many workers died with is given up
SLOW, SLOW_SECONDS = 3.0, 10.0  # a second worker gets a job after so many times the usual time, and so many seconds
CONNECT_SECONDS = 10.0  # how long a cluster may take to answer
REPORT_SECONDS = 60.0  # how often it is reported that no worker has a place yet


@dataclass(frozen=True)
class RayOptions:
    """Which cluster, and how many workers; none of it moves a score."""

    address: str | None = None
    """`ray://HOST:PORT` or HOST:PORT; None takes the one of RAY_ADDRESS, else the one that runs on this machine,
    else it starts one here. A process that is connected to Ray already stays connected as it is."""
    workers: int | None = None  # None: one for each GPU of the cluster; on clusters without GPUs one for each 4 cores
    gpus_per_worker: float | None = None  # 0.5 lets two share a GPU. None: one where the cluster has GPUs

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"The number of Ray workers is {self.workers}; it must be at least 1.")
        if self.gpus_per_worker is not None and self.gpus_per_worker < 0:
            raise UsageError(f"Each Ray worker would have {self.gpus_per_worker} GPUs; 0 is the least.")


def ray_options(engine: str, workers: int | None = None, gpus_per_worker: float | None = None) -> RayOptions | None:
    """What `--engine` and its two options mean; None is the local engine."""
    if engine.startswith("ray://") or engine == "ray":
        return RayOptions(engine if engine != "ray" else None, workers, gpus_per_worker)
    if engine != "local":
        raise UnknownName("engine", engine, ["local", "ray", "ray://HOST:PORT"])
    if workers is not None or gpus_per_worker is not None:
        raise UsageError("--workers and --gpus-per-worker are for --engine ray.")
    return None


def ray_map(function: Callable[[Job], Result], jobs: Iterable[Job], options: RayOptions) -> Iterator[Result]:
    """What the function, which must be picklable, makes of each of any number of jobs, by Ray workers of one core."""
    with RayPool(lambda: None, options, cpus=1, needs_gpu=False) as pool:
        yield from pool.map(lambda _, job: function(job), jobs)


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
        if place := re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:(\d+)", asked or ""):  # Ray would try for minutes
            socket.create_connection((place[1], int(place[2])), timeout=CONNECT_SECONDS).close()
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


class _Fleet(NamedTuple):
    """How many workers, and what each of them takes."""

    workers: int
    cpus: float
    gpus: float


def _fleet(options: RayOptions, nodes: Iterable[Entry], cpus: int, *, needs_gpu: bool | None) -> _Fleet:
    there = [node["Resources"] for node in nodes if node["Alive"]]
    gpus = options.gpus_per_worker
    if gpus is None or needs_gpu is False:
        some = needs_gpu is None and any(node.get("GPU") for node in there)
        gpus = 1.0 if needs_gpu or some else 0.0
    if gpus:
        fit = sum(int(node.get("GPU", 0) / gpus) for node in there)
        return _Fleet(options.workers or max(1, fit), 1, gpus)
    cores = [int(node.get("CPU", 0)) for node in there]
    share = sum(cores) // options.workers if options.workers else cpus
    cpus = max(1, min(cpus, share, max(cores, default=1)))
    return _Fleet(options.workers or max(1, sum(each // cpus for each in cores)), cpus, 0.0)


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

    def run(self, work: Callable[[Loaded, Job], Result], job: Job) -> Result:
        """The result, or an error of ours in a form that can travel; it names the machine if it is another one."""
        try:
            return work(self._loaded, job)
        except BeholderError as error:
            kinds = (DataError, ModelError, UsageError, BeholderError)
            here = socket.gethostname()
            where = f"\nThis was on {here}." if here != self._machine else ""
            raise next(kind for kind in kinds if isinstance(error, kind))(f"{error}{where}") from None


def _where(loaded: object, job: object) -> Started:
    return Started(socket.gethostname(), __version__, machine())


class RayPool(Generic[Loaded]):
    """Workers that each load something once; a context manager that ends them whatever happens."""

    def __init__(
        self, load: Callable[[], Loaded], options: RayOptions, *, cpus: int = CPUS, needs_gpu: bool | None = None
    ) -> None:
        self.ray = connect(options.address)
        self.fleet = _fleet(options, self.ray.nodes(), cpus, needs_gpu=needs_gpu)
        self._actor = self.ray.remote(_Worker).options(
            num_cpus=self.fleet.cpus, num_gpus=self.fleet.gpus, max_restarts=-1, scheduling_strategy="SPREAD"
        )
        self._given = load, os.getcwd(), socket.gethostname()
        self.starting: dict[Handle, Handle] = {}  # what it answers when it has loaded → worker
        self.ready: list[Handle] = []
        self.machines: dict[str, Started] = {}
        self._reported = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self.starting.values(), *self.ready):
            self.ray.kill(worker)

    @property
    def alive(self) -> str:
        """How many workers are up, in words."""
        return f"{len(self.ready)} of {self.fleet.workers} workers"

    @property
    def differences(self) -> list[str]:
        """Libraries of which the workers' machines have different versions, in words."""
        there = [each.libraries for each in self.machines.values()]
        versions = {name: {each.get(name, "none") for each in there} for name in sorted({n for e in there for n in e})}
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
        names: Callable[[Job], Sequence[object]] = lambda job: [job],
    ) -> Iterator[Result]:
        """The results in order, those finished before any error; `workers` suffice, `names` are for messages."""
        for _ in range((workers or self.fleet.workers) - len(self.ready) - len(self.starting)):
            self._start(self._actor.remote(*self._given))
        return _Round(self, self.ray.put(work), jobs, names).results()

    def _start(self, worker: Handle) -> None:
        """Ask a worker to load. Ray does that when the worker has a place, and again if it dies meanwhile."""
        self.starting[worker.run.options(max_task_retries=TRIES - 1).remote(_where, None)] = worker

    def started(self, reference: Handle) -> None:
        """A worker has loaded, or has died too often while it did."""
        worker = self.starting.pop(reference)
        try:
            there: Started = self.answer(reference)
        except self.ray.exceptions.RayActorError as error:
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
        self.machines[there.machine] = there
        self.ready.append(worker)

    def lost(self, worker: Handle) -> None:
        """A worker has died; Ray starts it again."""
        self.ready.remove(worker)
        self._start(worker)

    def answer(self, reference: Handle) -> Any:
        """What a worker answers; an error of ours as it was raised there."""
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, BeholderError):
                raise error.cause from None
            raise

    def report_if_waiting(self) -> None:
        """Say now and then that no worker is up yet: the cluster may be full, or lack what is asked for."""
        if self.ready or time.monotonic() - self._reported < REPORT_SECONDS:
            return
        self._reported = time.monotonic()
        total, free = self.ray.cluster_resources(), self.ray.available_resources()
        log.warning(
            "No Ray worker is up yet; one may still be loading. Each needs %g cores and %g GPUs; the cluster has "
            "%g and %g, of which %g and %g are free.",
            *(self.fleet.cpus, self.fleet.gpus),
            *(resources.get(kind, 0) for resources in (total, free) for kind in ("CPU", "GPU")),
        )


class _Attempt(NamedTuple):
    worker: Handle
    number: int
    since: float


class _Round(Generic[Job, Result]):
    """One list of jobs on its way through a pool."""

    def __init__(
        self, pool: RayPool[Any], work: Handle, jobs: Iterable[Job], names: Callable[[Job], Sequence[object]]
    ) -> None:
        self._pool, self._work, self._coming, self._names = pool, work, enumerate(jobs), names
        self._next = 0  # the job whose result is given next
        self._unfinished: dict[int, Job] = {}
        self._waiting: deque[int] = deque()
        self._running: dict[Handle, _Attempt] = {}
        self._done: dict[int, Result] = {}
        self._deaths = Counter[int]()
        self._seconds: deque[float] = deque(maxlen=64)

    def results(self) -> Iterator[Result]:
        try:
            while self._hand_out():
                if self._next in self._done:
                    self._next += 1
                    yield self._done.pop(self._next - 1)
                else:
                    self._wait()
        except GeneratorExit:
            raise
        except BaseException:  # Ctrl-C too
            yield from (self._done[number] for number in sorted(self._done))
            raise

    def _hand_out(self) -> bool:
        """Keep every worker busy; whether any result is still to come."""
        ahead = AHEAD * self._pool.fleet.workers - len(self._unfinished) - len(self._done)
        new = dict(islice(self._coming, max(0, ahead)))
        self._unfinished.update(new)
        self._waiting.extend(new)
        busy = {attempt.worker for attempt in self._running.values()}
        for worker in self._pool.ready:
            if worker not in busy and (number := self._choose()) is not None:
                reference = worker.run.remote(self._work, self._unfinished[number])
                self._running[reference] = _Attempt(worker, number, time.monotonic())
        return bool(self._unfinished or self._done)

    def _choose(self) -> int | None:
        """A job for a worker that has nothing to do: the next one, or one that is slow elsewhere."""
        while self._waiting:
            first = self._waiting.popleft()
            if first in self._unfinished:  # a second worker may have finished what the first one lost
                return first
        limit = max(SLOW_SECONDS, SLOW * median(self._seconds or [float("inf")]))
        times = Counter(attempt.number for attempt in self._running.values())
        late = {each.number for each in self._running.values() if time.monotonic() - each.since > limit}
        return min((each for each in late if each in self._unfinished and times[each] == 1), default=None)

    def _wait(self) -> None:
        happened, _ = self._pool.ray.wait([*self._pool.starting, *self._running], timeout=1.0)
        if not happened:
            self._pool.report_if_waiting()
        elif happened[0] in self._pool.starting:
            self._pool.started(happened[0])
        else:
            self._answered(happened[0], self._running.pop(happened[0]))

    def _answered(self, reference: Handle, attempt: _Attempt) -> None:
        try:
            result = self._pool.answer(reference)
        except self._pool.ray.exceptions.RayActorError as error:  # its job may be what killed it
            self._deaths[attempt.number] += 1
            if self._deaths[attempt.number] >= TRIES and attempt.number in self._unfinished:
                names = self._names(self._unfinished[attempt.number])
                raise DataError(
                    f"{TRIES} Ray workers died while they had:\n{listed(names)}\n"
                    "Memory may have run out, or one of these ends the process. "
                    "What was finished is kept: the same command continues there."
                ) from error
            self._waiting.appendleft(attempt.number)
            self._pool.lost(attempt.worker)
            return
        self._seconds.append(time.monotonic() - attempt.since)
        if attempt.number in self._unfinished:  # else another worker that had it too was first
            del self._unfinished[attempt.number]
            self._done[attempt.number] = result
