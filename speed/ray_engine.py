"""Ray's workers score about as fast as as many local processes would; what the engine adds is starting it once.

The same pictures with the embedded contrastive model, in this process and by one and by two workers of a local cluster,
one thread each. Only the clock is told: the processor time of workers is not seen from here.
"""

from __future__ import annotations

import os
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from bench import Claim, main

from beholder.datasets import load_dataset
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Scorer
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.fill import fill
from beholder.scores.ray_pool import RayOptions, connect
from beholder.scores.score_matrix import Task
from beholder.scores.scoring import RayScorer, on_ray
from beholder.scores.store import Store

NAME, LOAD = "glasshouse/contrastive", LoadOptions(device="cpu")


def engines(options: Namespace) -> Iterator[Claim]:
    """Seconds until a model is ready, and images a second from then on."""
    images = 16 if options.quick else options.images
    prompts = prompt_set("words", [{"text": f"a drawing of a {word}"} for word in ("doctor", "nurse", "chef", "judge")])
    task = Task("bench", load_dataset("glasshouse").limit(images), prompts)
    ways = [timed("local", lambda: nullcontext(load_model(NAME, LOAD)), task)]
    began = time.perf_counter()
    connect()
    start = time.perf_counter() - began
    for count in (1, 2):
        ways.append(timed(f"Ray, workers: {count}", partial(on_ray, NAME, LOAD, RayOptions(workers=count)), task))
    rows = [[name, ready, images / seconds, ways[0][2] / seconds] for name, ready, seconds in ways]
    claim = (
        f"{images:,} drawn pictures with {NAME}, one thread each; the local cluster took {start:.1f} s to start, once"
    )
    yield Claim(claim, ["way", "seconds until ready", "images/s", "ratio"], rows)


def timed(name: str, opened: Callable[[], AbstractContextManager[Scorer]], task: Task) -> tuple[str, float, float]:
    """Seconds until the model is ready on all workers, and then to fill a store."""
    began, few = time.perf_counter(), Task("few", task.dataset.limit(8), task.prompts)
    with opened() as scorer, tempfile.TemporaryDirectory() as folder:
        fill([few], scorer, Store(Path(folder) / "few"))
        while isinstance(scorer, RayScorer) and len(scorer.pool.ready) < scorer.pool.fleet.workers:
            fill([few], scorer, Store(Path(tempfile.mkdtemp(dir=folder))))
        ready, began = time.perf_counter() - began, time.perf_counter()
        fill([task], scorer, Store(Path(folder) / "all"))
        return name, ready, time.perf_counter() - began


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1000)
    main(engines, parser=parser)
