"""The store under load: `python speed/store.py [10000 100000 1000000]`, and `python speed/store.py --resumes 10000`.

Pictures are named, not opened, and vectors are made up; everything else is the product's own: the memory of digests,
the plan of the work, the blocks, the score matrix (500 prompts), and what perception reads off it by group. Each count
runs in a process of its own. Time per block must not grow; memory grows by the matrix and by a few columns per image.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

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
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.shelf import Shelf
from beholder.scores.store import Store
from beholder.scores.task import Task
from beholder.studies.perception.prompts import NEUTRAL, Dimension
from beholder.studies.perception.scores import group_by, read_judged

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
    means = CellMeans(judged.by_dimension(judged.cosine), groups.codes, judged.clusters, len(groups.names)).means()
    return float(means.value[0, 0])


def one_count(count: int) -> None:
    """Fill one sheet, find everything there again, measure it; print what each took."""
    scoring.Reader = Unopened  # type: ignore[assignment, misc]
    seconds, put = [], Shelf.put

    def timed(shelf: Shelf, keys: Sequence[str], channels: dict[str, Floats]) -> None:
        began = time.thread_time()
        put(shelf, keys, channels)
        if len(keys) > 1:
            seconds.append((time.thread_time() - began) / len(keys))

    Shelf.put = timed  # type: ignore[assignment, method-assign]
    asked, dimensions = prompts()
    with tempfile.TemporaryDirectory() as scratch:
        tar = Path(scratch, "shard.tar")
        tar.write_bytes(b"")
        uris = pl.Series("uri", (str(Part("wds", str(tar), i, 23, f"{i:08}.ppm")) for i in range(count)))
        ids = uris.str.split("#").list.last().alias("image_id")
        gender = pl.Series("gender", np.array(GROUPS)[np.arange(count) % 2])
        task = Task("load", Dataset("made up", "1", "MIT", pl.DataFrame([ids, uris, gender])), asked)
        before, blocks = megabytes(), 0
        table = task.dataset.table.estimated_size() / 2**20
        print(f"{count:,} images: {table:.0f} MB of table, {4 * count * PROMPTS / 2**20:.0f} MB of scores")
        for what in ("filled", "found again"):
            began = time.process_time()
            (matrix,) = filling.fill([task], MadeUp(), Store(Path(scratch, "store"))).matrices
            assert matrix.values.shape == (count, PROMPTS, 1)
            own = megabytes() - before - matrix.values.nbytes / 2**20
            print(
                f"  {what}: {time.process_time() - began:.1f} s of processor time, {megabytes():.0f} MB at the peak, "
                f"{2**20 * own / count:.0f} bytes per image beside table and scores"
            )
            if what == "filled":
                blocks = len(seconds)
                del matrix
        began = time.process_time()
        measured(matrix, dimensions)
        print(f"  measured: {time.process_time() - began:.1f} s of processor time, {megabytes():.0f} MB at the peak")
        tenth = max(1, blocks // 10)
        first, last = (1e6 * float(np.median(part)) for part in (seconds[:tenth], seconds[-tenth:]))
        print(f"  {blocks:,} blocks: {first:.1f} µs a row in the first tenth of them, {last:.1f} µs in the last")


def resumed(count: int) -> None:
    """A run that is stopped and resumed again and again, one block of ten rows each time."""
    rows = np.zeros((10, 20), np.float32)
    with tempfile.TemporaryDirectory() as scratch:
        seconds = []
        for run in range(count):
            began = time.process_time()
            keys = [content_digest(b"%d" % (run * 10 + i)) for i in range(10)]
            shelf = Store(Path(scratch)).scores(MadeUp().spec, "prompts")
            assert shelf.missing(keys) == keys
            shelf.merge_small_blocks()
            shelf.put(keys, {"cosine": rows})
            seconds.append(time.process_time() - began)
        tenth = max(1, count // 10)
        blocks = len(list(shelf.blocks()))
        first, last = np.mean(seconds[:tenth]) * 1e3, np.mean(seconds[-tenth:]) * 1e3
        print(f"{count:,} resumes: {first:.1f} ms each at first, {last:.1f} ms at last; {blocks} files, ", end="")
        print(f"{megabytes():.0f} MB at the peak, {len(os.listdir('/proc/self/fd'))} open files")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--resumes"]:
        resumed(int(sys.argv[2]))
    elif sys.argv[1:2] == ["--one"]:
        one_count(int(sys.argv[2]))
    else:
        counts, took = [int(count) for count in sys.argv[1:] or (10_000, 100_000, 1_000_000)], []
        for images in counts:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, __file__, "--one", str(images)], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if len(counts) > 1:
            slope = math.log(took[-1] / took[-2]) / math.log(counts[-1] / counts[-2])
            print(f"Processor time grows as the {slope:.2f}th power of the images between the last two counts.")
