"""Speed, as ratios in one run: `make bench`. Machines are noisy; the ratio of two timings taken together is not."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from memory import peak_megabytes

from beholder.datasets import open_dataset
from beholder.datasets.images import open_image
from beholder.metrics.bootstrap import Resampler
from beholder.models.load import load_model
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.fill import fill
from beholder.scores.store import Store
from beholder.scores.task import Task


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The fastest of a few runs."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def bootstrap_ratio() -> None:
    """2,000 draws of 9 means over 636 people: one matrix product against a draw at a time."""
    rng = np.random.default_rng(0)
    values, people = rng.random((636, 9)), np.arange(636)
    fast = seconds(lambda: Resampler(people, np.random.default_rng(1), 2000).means(values))

    def loop() -> None:
        for _ in range(2000):
            values[rng.integers(0, 636, 636)].mean(axis=0)

    slow = seconds(loop)
    print(f"bootstrap: {slow / fast:.1f} × as fast as drawing in a loop ({slow:.3f} s against {fast:.3f} s)")


def fill_ratio(images: int = 60) -> None:
    """The reference model on drawn residents: batches with read-ahead against one image and one prompt at a time."""
    scorer = load_model("glasshouse/contrastive")
    world = open_dataset("glasshouse").limit(images)
    prompts = prompt_set("words", [{"text": f"a drawing of a {w}"} for w in ("doctor", "nurse", "chef", "judge")])

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            fill([Task("bench", world, prompts)], scorer, Store(Path(folder)))

    def loop() -> None:
        for uri in world.table["uri"]:
            for text in prompts.texts:
                scorer.score_prepared([scorer.prepare(open_image(uri))], [text])

    fast, slow = seconds(ours), seconds(loop, 1)
    print(f"fill: {slow / fast:.1f} × as fast as an image and a prompt at a time ({slow:.1f} s against {fast:.1f} s)")


def import_time() -> None:
    """`import beholder`, less an empty interpreter."""
    whole, empty = (
        seconds(lambda code=code: subprocess.run([sys.executable, "-c", code], check=True), 5)  # type: ignore[misc]
        for code in ("import beholder", "pass")
    )
    print(f"import beholder: {whole - empty:.3f} s")


def memory() -> None:
    """Peak memory for 1,000 and 20,000 images."""
    few, many = peak_megabytes(1_000), peak_megabytes(20_000)
    print(f"memory: {few:.0f} MB for 1,000 images, {many:.0f} MB for 20,000")


if __name__ == "__main__":
    for benchmark in (import_time, bootstrap_ratio, fill_ratio, memory):
        benchmark()
    for script in (
        "gras.py",
        "matching.py",
        "disparity.py",
        "generative.py",
        "generative_face.py",
        "exposure.py",
        "pipeline.py",
    ):
        subprocess.run([sys.executable, Path(__file__).with_name(script)], check=True)
