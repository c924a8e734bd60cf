"""Audits to be killed: reads one job a line (JSON), forks a process for each, and answers how they ended.

Forking costs milliseconds where starting Python and loading everything costs seconds. Every image that the model is
really asked about leaves a line in the job's log before its block is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair  # noqa: F401  (takes long to load; a page needs it)
import numpy as np
import scipy.stats  # noqa: F401  (takes long to load; a study needs it)
from faults.disk import Disk
from PIL import Image

import beholder._audit as audit
import beholder._steps as steps
import beholder.scores.fill as fill
import beholder.scores.reading as reading
import beholder.scores.shelf as shelf
from beholder.models.preparation import Cut
from beholder.models.scorer import ContrastiveScorer, unit_rows
from beholder.models.spec import ModelSpec


class Slow(ContrastiveScorer):
    """Vectors that depend on what else is in the batch, by a hair, as on real hardware: a resumed run must not."""

    batch_size = 4

    def __init__(self, log: Path, pause: float) -> None:
        self.spec = ModelSpec("slow", "test", "none", "1", settings={"logit_scale": 5.0})
        self._log, self._pause = log, pause

    def prepare(self, image: Image.Image) -> bytes:
        return hashlib.sha256(image.tobytes()).digest()

    def embed_prepared(self, prepared: Sequence[Any]) -> np.ndarray:
        time.sleep(self._pause * len(prepared))
        items = [hashlib.sha256(np.asarray(each).tobytes()).digest() for each in prepared]
        with self._log.open("a") as log:
            log.write("".join(f"{item.hex()}\n" for item in items))
        shift = int.from_bytes(hashlib.sha256(b"".join(items)).digest()[:2], "little") * 1e-10
        return self._vectors(items) + np.float32(shift)

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self._vectors([hashlib.sha256(text.encode()).digest() for text in texts])

    def _vectors(self, items: Sequence[bytes]) -> np.ndarray:
        seeds = [int.from_bytes(item[:4], "little") for item in items]
        return unit_rows(np.stack([np.random.default_rng(seed).standard_normal(8) for seed in seeds]))


class InProcesses(Slow):
    """The same model; its pictures are cut by worker processes."""

    preparation = Cut(8, Image.Resampling.BICUBIC, (8, 8))


def run(job: dict[str, Any]) -> None:
    """One audit, which may kill itself at an operation of the disk."""
    # Imported here because it makes tables: polars then has threads, which do not survive a fork.
    from beholder.prompts.prompt_set import prompt_set
    from beholder.studies.custom.study import custom_study

    fill.BLOCK_ROWS, shelf.FEW = 8, 3  # small blocks are merged at every start
    reading.PROCESSES_FROM = 1
    model = InProcesses if job["processes"] else Slow
    steps.load_model = lambda name, options: model(Path(job["log"]), job["pause"])  # type: ignore[assignment]
    steps.write_page = lambda report, folder: folder  # type: ignore[assignment]  # the page is tested elsewhere
    rows = [{"text": text, "level": "words", "concept": text} for text in ("kind", "cold", "clever")]
    options = audit.AuditOptions(
        dataset=f"folder:{job['folder']}",
        out=Path(job["out"]),
        store=Path(job["store"]),
        processes=job["processes"],
        threads=2,
        draws=100,
    )
    with Disk(Path(job["store"]), _die, job["kill_at"], job["kill_on"]) as disk:
        audit.audit_models(["slow"], [custom_study(prompt_set("words", rows), by=("gender",))], options)
    Path(job["out"], "operations.txt").write_text("\n".join(disk.done))


def _die(path: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def started(job: dict[str, Any]) -> int:
    """The process of a job."""
    if process := os.fork():
        return process
    try:
        sys.stdout = sys.stderr
        run(job)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    for line in sys.stdin:
        jobs = json.loads(line)
        processes = [started(job) for job in jobs]
        for job, process in zip(jobs, processes, strict=True):
            if job["kill_after"] is not None:
                time.sleep(job["kill_after"])
                os.kill(process, signal.SIGKILL)
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]), flush=True)


if __name__ == "__main__":
    main()
