"""Peak memory of filling against the number of images: `python speed/memory.py [1000 20000 …]`.

Each count runs in a process of its own, which starts worker processes as always; the peak is that of this process and
of the largest worker together. Pictures have a true model's size (224 × 224 × 3), so that anything that piles up shows.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from PIL import Image

from beholder.datasets.dataset import Dataset
from beholder.models.preparation import Cut
from beholder.models.scorer import ContrastiveScorer, unit_rows
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import prompt_set
from beholder.scores import executor
from beholder.scores.fill import fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store


class Averages(ContrastiveScorer):
    """A cheap embedder with a true model's input size."""

    batch_size = 32
    preparation = Cut((224, 224), Image.Resampling.NEAREST)

    def __init__(self) -> None:
        self.spec = ModelSpec("averages", "benchmark", "none", "1", settings={"logit_scale": 1.0})

    def embed_prepared(self, prepared: Sequence[npt.NDArray[np.uint8]]) -> npt.NDArray[np.float32]:
        return unit_rows(np.stack(prepared)[:, ::56, ::56].reshape(len(prepared), -1) + 1.0)

    def embed_texts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return unit_rows(np.random.default_rng(0).standard_normal((len(texts), 48)))


def synthetic_images(count: int, folder: Path) -> Dataset:
    """As many different small pictures as asked for."""
    header = b"P6 8 8 255\n"
    for i in range(count):
        (folder / f"{i}.ppm").write_bytes(header + i.to_bytes(4, "little") * 48)
    ids = [f"{i}.ppm" for i in range(count)]
    table = pl.DataFrame({"image_id": ids, "uri": [str(folder / name) for name in ids]})
    return Dataset("synthetic", "1", "MIT", table)


def fill_and_print_peak(count: int) -> None:
    """Fill one sheet and print the peak memory of this process and its largest worker in MB."""
    executor.STARTING = get_context("spawn")  # as children of this process, whose peak is known
    with tempfile.TemporaryDirectory() as scratch:
        dataset = synthetic_images(count, Path(scratch))
        prompts = prompt_set("words", [{"text": "kind"}, {"text": "cold"}])
        fill([Task("memory", dataset, prompts)], Averages(), Store(Path(scratch) / "store"))
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    print(sum(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024)


def peak_megabytes(count: int) -> float:
    """Peak memory of filling `count` images, in MB, measured in a process of its own."""
    command = [sys.executable, __file__, "--one", str(count)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        fill_and_print_peak(int(sys.argv[2]))
    else:
        for images in map(int, sys.argv[1:] or ["1000", "20000"]):
            print(f"{images:>7,} images: {peak_megabytes(images):.0f} MB at the peak")
