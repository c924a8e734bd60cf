"""What the tests of faults share: small models whose scores are known, and a disk on which one operation goes wrong."""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from PIL import Image

from beholder.core.digests import content_digest
from beholder.datasets.dataset import Dataset
from beholder.models.null import NullScorer
from beholder.models.scorer import ContrastiveScorer, unit_rows
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.fill import FillOptions, fill
from beholder.scores.store import Store
from beholder.scores.task import Task

PROMPTS = prompt_set("toy", [{"text": text} for text in ("kind", "cold", "clever")])
OTHERS = prompt_set("others", [{"text": text} for text in ("rich", "poor", "tall")])
THREADS = FillOptions(processes=0, workers=1)


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


class Disk:
    """The operations on files below a folder, counted; the one with the number `at` meets `fate` (from 0)."""

    def __init__(
        self, root: Path, fate: Callable[[str], None] = lambda path: None, at: int = -1, only: str = ""
    ) -> None:
        self._root, self._fate, self._at, self._only = str(root), fate, at, only
        self.done: list[str] = []
        self._kept: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Self:
        for owner, name, operation in (
            (os, "fsync", "fsync"),
            (os, "replace", "rename"),
            (os, "rename", "rename"),
            (os, "unlink", "unlink"),
            (os, "mkdir", "mkdir"),
            (os, "chmod", "chmod"),
            (os, "link", "link"),
            (sqlite3, "connect", "sqlite"),
        ):
            self._replace(owner, name, self._watched(getattr(owner, name), operation))
        self._replace(io, "open", self._opening(io.open))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, value in self._kept:
            setattr(owner, name, value)

    def happens(self, operation: str, path: str) -> None:
        """Count an operation, and let it meet its fate if it is the one."""
        if self._only in ("", operation):
            self.done.append(operation)
            if len(self.done) - 1 == self._at:
                self._fate(path)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _watched(self, function: Any, operation: str) -> Any:
        def watched(target: Any, *arguments: Any, **options: Any) -> Any:
            if operation == "fsync" or str(target).removeprefix("file://").startswith(self._root):
                self.happens(operation, str(target))
            return function(target, *arguments, **options)

        return watched

    def _opening(self, function: Any) -> Any:
        def opening(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not str(file).startswith(self._root):
                return function(file, mode, *arguments, **options)
            self.happens("open to write" if "w" in mode else "open to read", str(file))
            return _File(function(file, mode, *arguments, **options), self, str(file))

        return opening


class _File:
    """A file whose reading and writing are counted; of what is written when the disk fails, half arrives."""

    def __init__(self, file: Any, disk: Disk, path: str) -> None:
        self._file, self._disk, self._path = file, disk, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, *arguments: Any) -> Any:
        self._disk.happens("read", self._path)
        return self._file.read(*arguments)

    def write(self, data: bytes) -> int:
        self._file.write(data[: len(data) // 2])
        self._file.flush()
        self._disk.happens("write", self._path)
        return int(self._file.write(data[len(data) // 2 :]))
