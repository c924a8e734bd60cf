"""Draw worlds again and again in parallel; what is done is kept, so that the same command goes on where it stopped.

Every world has a generator of its own, made of the seed, its cell and its number: results do not depend on how many
processes there are or where a run was interrupted. A block of worlds is a file, written whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import beholder
from beholder.calibration.claims import Cell, Claims, Said, TrueValues, claims, measured, true_values
from beholder.core.errors import DataError
from beholder.core.files import write_whole
from beholder.core.read import read_json
from beholder.studies.worlds import GENDER_ONLY

BLOCK = 50
PLACE = ("study", "design", "world", "claim")
SCHEMA = {**dict.fromkeys(PLACE, pl.String), **dict.fromkeys(Said._fields, pl.Int64)}


class Block(NamedTuple):
    """Some worlds of one cell."""

    cell: Cell
    seed: int
    start: int
    stop: int

    def path(self, folder: Path) -> Path:
        """Where its counts lie: the name stands for everything that they depend on."""
        return _path(folder, *self.cell, self.seed, self.start, self.stop)


@cache
def _code() -> str:
    """A digest of the program: blocks of another version are not taken for ours."""
    root = Path(beholder.__file__).parent
    files = (path for part in ("studies", "comparison", "metrics", "calibration") for path in root.glob(f"{part}/**/*"))
    return hashlib.sha256(
        b"".join(path.read_bytes() for path in sorted(files) if path.suffix in (".py", ".csv"))
    ).hexdigest()


def _path(folder: Path, *parts: object) -> Path:
    return folder / "blocks" / f"{hashlib.sha256(json.dumps([_code(), *parts]).encode()).hexdigest()[:24]}.json"


def blocks_of(cells: Iterable[Cell], worlds: int, seed: int) -> list[Block]:
    """All cells cut into blocks, the first blocks of all cells first."""
    starts = range(0, worlds, BLOCK)
    return [Block(cell, seed, start, min(start + BLOCK, worlds)) for start in starts for cell in cells]


def simulate(block: Block, folder: Path) -> list[list[str | int]]:
    """For each claim, in how many worlds of a block what is said of it."""
    cell, counts, truth = block.cell, Claims(), _true_values(block, folder)
    for number in range(block.start, block.stop):
        rng = np.random.default_rng([block.seed, *"".join(cell).encode(), number])
        for name, said in claims(cell, measured(cell, rng), truth).items():
            counts[name] = Said(*map(sum, zip(counts.get(name, Said()), said, strict=True)))
    return [[name, *map(int, said)] for name, said in counts.items()]


def _true_values(block: Block, folder: Path) -> TrueValues:
    """Kept in a file: the large draw is made once for a cell."""
    if block.cell.world != GENDER_ONLY:
        return {}
    path = _path(folder, *block.cell, "true values")
    kept = _kept(path)
    if kept is None:
        kept = [[*place, value] for place, value in true_values(block.cell).items()]
        write_whole(path, json.dumps(kept).encode())
    return {tuple(place): float(value) for *place, value in kept}


def _kept(path: Path) -> list[list[Any]] | None:
    """What a file holds; None where it is not there, or damaged and to be made again."""
    try:
        kept: list[list[Any]] = read_json(path)
    except DataError:
        return None
    return kept


def _work(block: Block, folder: Path) -> None:
    write_whole(block.path(folder), json.dumps(simulate(block, folder)).encode())


def repeat(
    cells: Sequence[Cell],
    folder: Path,
    *,
    worlds: int,
    seed: int,
    workers: int,
    advance: Callable[[int], None] = lambda count: None,
) -> pl.DataFrame:
    """In how many of so many worlds of every cell what is said; blocks that lie in the folder are not drawn again."""
    blocks = blocks_of(cells, worlds, seed)
    missing = [block for block in blocks if _kept(block.path(folder)) is None]
    advance(sum(block.stop - block.start for block in set(blocks) - set(missing)))
    if workers == 1 or len(missing) < 2:
        for block in missing:
            _work(block, folder)
            advance(block.stop - block.start)
    else:
        _in_parallel(missing, folder, workers, advance)
    counts = [(*block.cell, *entry) for block in blocks for entry in _kept(block.path(folder)) or ()]
    table = pl.DataFrame(counts, schema=SCHEMA, orient="row")
    return table.group_by(PLACE, maintain_order=True).sum().with_columns(worlds=pl.lit(worlds))


def _in_parallel(blocks: list[Block], folder: Path, workers: int, advance: Callable[[int], None]) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(name, "1")  # before the workers load numpy and polars: processes, not threads
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
