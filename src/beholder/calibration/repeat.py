"""Draw worlds again and again in parallel; what is done is kept, so that the same command goes on where it stopped.

Every world has a generator of its own, made of the seed, its cell and its number: results do not depend on how many
processes there are or where a run was interrupted. A block of worlds is a file, written whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import beholder
from beholder.calibration.claims import Cell, Claims, Said, claims, measured, true_values
from beholder.core.errors import DataError
from beholder.core.files import write_whole
from beholder.core.read import read_json
from beholder.scores.executor import Processes

BLOCK = 50
PARTS = ("studies", "chapter", "comparison", "metrics", "calibration")
PLACE = ("study", "design", "world", "claim")
SCHEMA = {**dict.fromkeys(PLACE, pl.String), **dict.fromkeys(Said._fields, pl.Int64)}


class Block(NamedTuple):
    """Some worlds of one cell, and the folder that keeps what is said in them."""

    cell: Cell
    seed: int
    start: int
    stop: int
    folder: Path

    @property
    def path(self) -> Path:
        """Where its counts lie: the name stands for everything that they depend on."""
        name = json.dumps([_code(), *self[:-1]]).encode()
        return self.folder / "blocks" / f"{hashlib.sha256(name).hexdigest()[:24]}.json"


@cache
def _code() -> str:
    """A digest of the program: blocks of another version are not taken for ours."""
    root, digest = Path(beholder.__file__).parent, hashlib.sha256()
    for path in sorted(each for part in PARTS for each in (root / part).rglob("*") if each.suffix in (".py", ".csv")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def blocks_of(cells: Sequence[Cell], worlds: int, seed: int, folder: Path) -> list[Block]:
    """All cells cut into blocks, the first blocks of all cells first."""
    starts = range(0, worlds, BLOCK)
    return [Block(cell, seed, start, min(start + BLOCK, worlds), folder) for start in starts for cell in cells]


def simulate(block: Block) -> list[list[str | int]]:
    """For each claim, in how many worlds of a block what is said of it."""
    cell, counts = block.cell, Claims()
    for number in range(block.start, block.stop):
        rng = np.random.default_rng([block.seed, *"".join(cell).encode(), number])
        for name, said in claims(cell, measured(cell, rng), true_values(cell)).items():
            counts[name] = Said(*map(sum, zip(counts.get(name, Said()), said, strict=True)))
    return [[name, *map(int, said)] for name, said in counts.items()]


def _kept(block: Block) -> list[list[Any]] | None:
    """What is said in a block; None where it was not drawn yet, or its file is damaged and it is drawn again."""
    try:
        kept: list[list[Any]] = read_json(block.path)
    except DataError:
        return None
    return kept


def _work(block: Block) -> int:
    """How many worlds were drawn."""
    write_whole(block.path, json.dumps(simulate(block)).encode())
    return block.stop - block.start


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
    blocks = blocks_of(cells, worlds, seed, folder)
    missing = [block for block in blocks if _kept(block) is None]
    advance(sum(block.stop - block.start for block in set(blocks) - set(missing)))
    if workers == 1:
        for block in missing:
            advance(_work(block))
    else:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
            os.environ.setdefault(name, "1")  # before the workers load numpy and polars: processes, not threads
        with Processes(workers, does="draws worlds") as pool:
            for drawn in pool.map(_work, missing):
                advance(drawn)
    counts = [(*block.cell, *entry) for block in blocks for entry in _kept(block) or ()]
    table = pl.DataFrame(counts, schema=SCHEMA, orient="row")
    return table.group_by(PLACE, maintain_order=True).sum().with_columns(worlds=pl.lit(worlds))
