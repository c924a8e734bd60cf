"""Repeat experiments in parallel processes; what is done is kept, so that the same command goes on where it stopped.

Every repetition has a generator of its own, made of the seed, the experiment and its number: results do not depend on
how many processes there are or where a run was interrupted. A block of repetitions is a file, written whole or not at
all.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path

import numpy as np
import numpy.typing as npt

from beholder.calibration.experiments import experiments
from beholder.core.errors import DataError
from beholder.core.files import write_whole
from beholder.core.read import read_array
from beholder.studies.trial import Experiment

Array = npt.NDArray[np.float64]
BLOCK = 50
VERSION = 4
"""Raised when the worlds or the measures change, so that no old block is taken for a new one."""


@dataclass(frozen=True)
class Block:
    """Some repetitions of one experiment."""

    experiment: str
    seed: int
    start: int
    stop: int

    def path(self, folder: Path) -> Path:
        """Where its outcomes lie: the name stands for everything that they depend on."""
        trials = [str(trial) for trial in experiments()[self.experiment].trials]
        digest = hashlib.sha256(json.dumps([VERSION, *astuple(self), trials]).encode()).hexdigest()
        return folder / "blocks" / f"{digest[:24]}.npy"


def repetitions_of(experiment: Experiment, repetitions: int) -> int:
    """How many of the asked-for repetitions an experiment takes."""
    return max(1, round(repetitions * experiment.share))


def blocks_of(experiment: Experiment, repetitions: int, seed: int) -> list[Block]:
    """The experiment cut into blocks."""
    total = repetitions_of(experiment, repetitions)
    return [Block(experiment.name, seed, start, min(start + BLOCK, total)) for start in range(0, total, BLOCK)]


def simulate(block: Block) -> Array:
    """Outcomes `[repetitions, trials, 4]`: value, low, high, p."""
    experiment, name = experiments()[block.experiment], list(block.experiment.encode())
    drawn = [
        experiment.simulate(np.random.default_rng([block.seed, *name, number]))
        for number in range(block.start, block.stop)
    ]
    return np.array(drawn, dtype=np.float64)


def _work(block: Block, folder: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, simulate(block))
    write_whole(block.path(folder), buffer.getvalue())


def _kept(block: Block, folder: Path) -> Array | None:
    """A block's outcomes; None where it was not drawn yet, or its file is damaged and it has to be drawn again."""
    try:
        return read_array(block.path(folder)).astype(np.float64)
    except DataError:
        return None


def repeat(
    chosen: Sequence[Experiment],
    folder: Path,
    *,
    repetitions: int,
    seed: int,
    workers: int,
    advance: Callable[[int], None] = lambda count: None,
) -> dict[str, Array]:
    """Outcomes of every experiment; blocks that lie in the folder are not drawn again."""
    blocks = [block for each in chosen for block in blocks_of(each, repetitions, seed)]
    missing = [block for block in blocks if _kept(block, folder) is None]
    advance(sum(block.stop - block.start for block in blocks if block not in missing))
    if workers == 1 or len(missing) < 2:
        for block in missing:
            _work(block, folder)
            advance(block.stop - block.start)
    else:
        _in_parallel(missing, folder, workers, advance)
    found = {each.name: [read_array(b.path(folder)) for b in blocks_of(each, repetitions, seed)] for each in chosen}
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _in_parallel(blocks: list[Block], folder: Path, workers: int, advance: Callable[[int], None]) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the workers load numpy: processes, not threads
    spawn, others = get_context("spawn"), set(active_children())
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_end_with_parent) as pool:
        with _unstopped():
            waiting = {pool.submit(_work, block, folder): block for block in blocks}
        try:
            for done in as_completed(waiting):
                done.result()
                advance(waiting[done].stop - waiting[done].start)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(active_children()) - others:  # blocks are written whole: none is left by half
                worker.terminate()
            raise


@contextmanager
def _unstopped() -> Iterator[None]:
    """Processes started here do not hear Ctrl-C, each with a traceback of its own: the parent does, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
