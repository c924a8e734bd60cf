"""A million images × 500 prompts are filled, found again and measured in under 4 GB; time per block does not grow.

Pictures are named, not opened, and vectors are made up; everything else is the product's own: the memory of digests,
the plan of the work, the blocks, the score matrix, and what perception reads off it by group. Each count runs in a
process of its own. Memory grows by the matrix and by a few columns per image. `--resumes 10000` is a run that is
stopped and resumed again and again.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from bench import Cell, Claim, main, processor_seconds
from growth import power_law

from beholder.comparison.groups import group_by
from beholder.core.digests import content_digest
from beholder.datasets.content import Part
from beholder.datasets.dataset import Dataset
from beholder.metrics.clustered import CellMeans
from beholder.models.scorer import ContrastiveScorer, unit_rows
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import PromptSet, prompt_set
from beholder.scores import fill as filling
from beholder.scores import scoring
from beholder.scores.reading import Opened
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.scores.shelf import Shelf
from beholder.scores.store import Store
from beholder.studies.perception.prompts import NEUTRAL, Dimension
from beholder.studies.perception.scores import read_judged

WIDTH, PROMPTS, TEMPLATES = 64, 500, 10
GROUPS = ("woman", "man")
Floats = npt.NDArray[np.float32]


class MadeUp(ContrastiveScorer):
    """Vectors that cost next to nothing."""

    batch_size = 64

    def __init__(self) -> None:
        self.spec = ModelSpec("made up", "benchmark", "none", "1", settings={"logit_scale": 1.0})
        self._words = unit_rows(np.random.default_rng(0).standard_normal((PROMPTS, WIDTH)))

    def embed_prepared(self, prepared: Sequence[str]) -> Floats:
        return self._words[np.fromiter(map(len, prepared), int) % PROMPTS]

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        return self._words[: len(texts)]


class Unopened:
    """In place of what reads images: each gives the digest of its address."""

    def __init__(self, *_: object) -> None:
        pass

    def read(
        self, batches: Sequence[list[str]], key: Callable[[str], str], stored: Callable[[str], bool]
    ) -> Iterator[Opened]:
        for batch in batches:
            fresh = {uri: content_digest(uri.encode()) for uri in batch if not key(uri)}
            yield Opened(len(batch), batch, batch, [], fresh)


def megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def prompts() -> tuple[PromptSet, list[Dimension]]:
    """Words of ten dimensions in ten templates, the neutral word among them."""
    words = [NEUTRAL, *(f"word {i}" for i in range(1, PROMPTS // TEMPLATES))]
    rows = [
        {"text": f"{word}, {template}", "concept": word, "template": str(template)}
        for word in words
        for template in range(TEMPLATES)
    ]
    dimensions = [Dimension(f"dimension {i}", f"dimension {i}", tuple(words[1 + 5 * i : 6 + 5 * i])) for i in range(9)]
    return prompt_set("words", rows), dimensions


def measured(matrix: ScoreMatrix, dimensions: Sequence[Dimension]) -> float:
    """Mean cosine of every dimension in every group, with intervals, as perception has them."""
    judged = read_judged(matrix, dimensions)
    groups = group_by(judged.images, ("gender",))
    means = CellMeans(judged.by_dimension(judged.cosine), groups.codes, judged.people.codes, len(groups.names)).means()
    return float(means.value[0, 0])


class Took(NamedTuple):
    """What one count of images took: seconds of processor time, megabytes, microseconds."""

    images: int
    filled: float
    found_again: float
    measured: float
    peak: float
    bytes_per_image: float
    """At the peak of filling, beside the table and the scores; what the libraries take is in it."""
    blocks: int
    first: float
    last: float
    """Microseconds a row, in the first and in the last tenth of the blocks."""


def one_count(count: int) -> Took:
    """Fill one sheet, find everything there again, measure it."""
    scoring.Reader = Unopened  # type: ignore[assignment, misc]
    per_row, put = [], Shelf.put

    def timed_put(shelf: Shelf, keys: Sequence[str], channels: dict[str, Floats]) -> None:
        began = time.thread_time()
        put(shelf, keys, channels)
        if shelf.folder.name == "images":
            per_row.append(1e6 * (time.thread_time() - began) / len(keys))

    Shelf.put = timed_put  # type: ignore[assignment, method-assign]
    asked, dimensions = prompts()
    with tempfile.TemporaryDirectory() as scratch:
        tar = Path(scratch, "shard.tar")
        tar.write_bytes(b"")
        uris = pl.Series("uri", (str(Part("wds", str(tar), i, 23, f"{i:08}.ppm")) for i in range(count)))
        ids = uris.str.split("#").list.last().alias("image_id")
        gender = pl.Series("gender", np.array(GROUPS)[np.arange(count) % 2])
        task = Task("load", Dataset("made up", "1", "MIT", pl.DataFrame([ids, uris, gender]), made=True), asked)
        before, clock = megabytes(), [processor_seconds()]
        for _ in ("filled", "found again"):
            (matrix,) = filling.fill([task], MadeUp(), Store(Path(scratch, "store"))).matrices
            clock.append(processor_seconds())
            own = megabytes() - before - matrix.values.nbytes / 2**20
            if len(clock) == 2:
                del matrix
        measured(matrix, dimensions)
        clock.append(processor_seconds())
    tenth = max(1, len(per_row) // 10)
    first, last = (float(np.median(part)) for part in (per_row[:tenth], per_row[-tenth:]))
    return Took(count, *np.diff(clock).tolist(), megabytes(), 2**20 * own / count, len(per_row), first, last)


def million(options: Namespace) -> Iterator[Claim]:
    """Growing counts of images."""
    rows: list[Took] = []
    for count in [200, 400] if options.quick else options.counts:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            rows.append(pool.submit(one_count, count).result())
    grows = ""
    if len(rows) > 2:
        fit = power_law([row.images for row in rows], [row.filled for row in rows])
        grows = f"; filling grows as images to the power of {fit.exponent:.2f}"
    cells: list[list[Cell]] = [[*row] for row in rows]
    names = ("images", "filled s", "found again s", "measured s", "peak MB", "bytes per image", "blocks")
    yield Claim(f"Store: {PROMPTS} prompts, processor time{grows}", [*names, "first µs a row", "last µs a row"], cells)


def resumed(options: Namespace) -> Iterator[Claim]:
    """A run that is stopped and resumed again and again, one block of ten rows each time."""
    count, rows = 30 if options.quick else options.resumes, np.zeros((10, 20), np.float32)
    if not count:
        return
    with tempfile.TemporaryDirectory() as scratch:
        seconds = []
        for run in range(count):
            began = time.process_time()
            keys = [content_digest(b"%d" % (run * 10 + i)) for i in range(10)]
            shelf = Store(Path(scratch)).scores(MadeUp().spec, "prompts")
            assert shelf.missing(keys) == keys
            shelf.merge_small_blocks()
            shelf.put(keys, {"cosine": rows})
            seconds.append(1e3 * (time.process_time() - began))
        tenth = max(1, count // 10)
        first, last = float(np.mean(seconds[:tenth])), float(np.mean(seconds[-tenth:]))
        files = (len(list(shelf.blocks())), len(os.listdir("/proc/self/fd")))
    columns = ["resumes", "first ms", "last ms", "blocks", "open files"]
    yield Claim("Store: a run resumed again and again, ten rows each time", columns, [[count, first, last, *files]])


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("counts", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--resumes", type=int, default=0)
    main(million, resumed, parser=parser)
