"""The store under load: `python speed/store.py [100000 1000000]`, and `python speed/store.py --resumes 10000`.

Images are names, not files, and vectors are made up: what is measured is the planning of the work, the keys and the
blocks. Each count runs in a process of its own. Time per block must not grow, nor open files; memory grows by what a
name, a key and a row of scores take.
"""

from __future__ import annotations

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
from beholder.datasets.dataset import Dataset
from beholder.models.scorer import ContrastiveScorer
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import prompt_set
from beholder.scores import fill as filling
from beholder.scores import scoring
from beholder.scores.reading import Opened
from beholder.scores.shelf import Shelf
from beholder.scores.store import Store
from beholder.scores.task import Task

WIDTH, PROMPTS = 64, 20
Floats = npt.NDArray[np.float32]


class MadeUp(ContrastiveScorer):
    """Vectors that cost nothing."""

    batch_size = 64

    def __init__(self) -> None:
        self.spec = ModelSpec("made up", "benchmark", "none", "1", settings={"logit_scale": 1.0})

    def embed_prepared(self, prepared: Sequence[str]) -> Floats:
        return np.full((len(prepared), WIDTH), len(prepared[0]) / 100, np.float32)

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        return np.ones((len(texts), WIDTH), np.float32)


class Names:
    """Stands in for the digests of files, and for what reads them."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def remembered(self, uris: Sequence[str]) -> list[str | None]:
        return [content_digest(uri.encode()) for uri in uris]

    def remember(self, digests: object) -> None:
        pass

    def read(self, batches: list[list[str]], *_: Callable[[str], object]) -> Iterator[Opened]:
        for batch in batches:
            yield Opened(len(batch), batch, batch, [], {})


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fill_and_resume(count: int) -> None:
    """Fill one sheet, then find everything there again; print what each took."""
    filling.ImageDigests = Names  # type: ignore[assignment, misc]
    scoring.Reader = Names  # type: ignore[assignment, misc]
    seconds, put = [], Shelf.put

    def timed(shelf: Shelf, keys: Sequence[str], channels: dict[str, Floats]) -> None:
        began = time.process_time()
        put(shelf, keys, channels)
        seconds.append(time.process_time() - began)

    Shelf.put = timed  # type: ignore[assignment, method-assign]
    names = [f"/data/set/images/{i:08}.jpg" for i in range(count)]
    dataset = Dataset("made up", "1", "MIT", pl.DataFrame({"image_id": names, "uri": names}))
    task = Task("load", dataset, prompt_set("words", [{"text": f"word {i}"} for i in range(PROMPTS)]))
    with tempfile.TemporaryDirectory() as scratch:
        before = megabytes()
        for what in ("filled", "found again"):
            began = time.process_time()
            (matrix,) = filling.fill([task], MadeUp(), Store(Path(scratch))).matrices
            assert matrix.values.shape == (count, PROMPTS, 1)
            took, files = time.process_time() - began, len(os.listdir("/proc/self/fd"))
            print(
                f"{count:>9,} images {what}: {took:.1f} s of processor time, {megabytes() - before:.0f} MB more at "
                f"the peak, {files} open files"
            )
        tenth = max(1, len(seconds) // 10)
        first, last = np.median(seconds[:tenth]) * 1e3, np.median(seconds[-tenth:]) * 1e3
        print(f"{len(seconds):,} blocks: {first:.2f} ms each at first, {last:.2f} ms at last")


def resumed(count: int) -> None:
    """A run that is stopped and resumed again and again, one block of ten rows each time."""
    rows = np.zeros((10, PROMPTS), np.float32)
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
        fill_and_resume(int(sys.argv[2]))
    else:
        for images in sys.argv[1:] or ["100000", "1000000"]:
            subprocess.run([sys.executable, __file__, "--one", images], check=True)
