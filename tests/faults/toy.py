"""What the tests of faults share: small models whose scores are known, and their tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from beholder.core.digests import content_digest
from beholder.datasets.dataset import Dataset
from beholder.models.scorer import ContrastiveScorer, NullScorer, unit_rows
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.fill import FillOptions, fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store

PROMPTS = prompt_set("toy", [{"text": text} for text in ("kind", "cold", "clever")])
OTHERS = prompt_set("others", [{"text": text} for text in ("rich", "poor", "tall")])
THREADS = FillOptions(processes=0, threads=1)


class Towers(ContrastiveScorer):
    """A contrastive model whose vectors are hashes of the picture and its revision; counts the images it is asked."""

    batch_size = 4

    def __init__(self, revision: str = "1") -> None:
        self.spec = ModelSpec("towers", "test", "none", revision, settings={"logit_scale": 10.0})
        self.asked = 0

    def prepare(self, image: Image.Image) -> bytes:
        return image.tobytes()

    def embed_prepared(self, prepared: Sequence[bytes]) -> np.ndarray:
        self.asked += len(prepared)
        return self._vectors(prepared)

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self._vectors([text.encode() for text in texts])

    def _vectors(self, items: Sequence[bytes]) -> np.ndarray:
        salt = self.spec.revision.encode()
        seeds = [int.from_bytes(hashlib.sha256(salt + item).digest()[:4], "little") for item in items]
        return unit_rows(np.stack([np.random.default_rng(seed).standard_normal(8) for seed in seeds]))


class Pairs(NullScorer):
    """A model that scores pairs, in two channels."""

    channels = ("log_p_yes", "log_p_no")
    batch_size = 4

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.asked = 0

    def score_prepared(self, prepared: Sequence[bytes], prompts: Sequence[str]) -> np.ndarray:
        self.asked += len(prepared)
        cells = super().score_prepared(prepared, prompts)
        return np.concatenate([cells, cells - 1], axis=2)


def toy_task(folder: Path, count: int, prompts: Any = PROMPTS) -> Task:
    """As many small pictures as asked for, with prompts."""
    folder.mkdir(exist_ok=True)
    for i in range(count):
        if not (folder / f"{i}.ppm").exists():
            (folder / f"{i}.ppm").write_bytes(b"P6 2 2 255\n" + hashlib.sha256(b"%d" % i).digest()[:12])
    names = [f"{i}.ppm" for i in range(count)]
    table = pl.DataFrame({"image_id": names, "uri": [str(folder / name) for name in names]})
    return Task("toy", Dataset("toy", "1", "MIT", table), prompts)


def scores(task: Task, scorer: Any, root: Path) -> np.ndarray:
    """The task's scores, from the store where it has them."""
    return fill([task], scorer, Store(root), THREADS).matrices[0].values


def lacking(task: Task, scorer: Any, root: Path) -> int:
    """How many images no sound block of the store holds."""
    store = Store(root)
    shelf = (
        store.images(scorer.spec)
        if isinstance(scorer, Towers)
        else Store(root).scores(scorer.spec, task.prompts.digest)
    )
    return len(shelf.missing([content_digest(Path(uri).read_bytes()) for uri in task.dataset.table["uri"]]))
