"""Score what the store lacks. Resume is the normal path: a fresh run is one that lacks everything.

Images are read ahead (`reading.py`) and scored in batches (`scoring.py`), on several devices if the model was loaded so
(`replicas.py`), or by Ray's workers (`ray_scorer.py`). Batches are cut from the whole list, never from what happens to
be missing, so that a resumed run sees the same batches as a fresh one. Blocks are written in a thread of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from beholder.core.progress import Progress, silent
from beholder.datasets.dataset import ImageDigests
from beholder.datasets.verify import unreadable, unreadable_error
from beholder.models.load import replicas_of
from beholder.models.scorer import Embedder, Scorer, cosines
from beholder.scores.ray_pool import RayOptions
from beholder.scores.ray_scorer import RayScorer
from beholder.scores.reading import ReadOptions, WorkersOnDemand
from beholder.scores.replicas import Replicas
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.scoring import Asked, BatchScorer, Floats, Scored, refuse_non_finite
from beholder.scores.shelf import Shelf
from beholder.scores.store import Store
from beholder.scores.task import Task

BLOCK_ROWS = 256
BLOCK_SECONDS = 10.0
READ_ROWS = 1 << 16
"""Vectors that are in memory together: those of a million images would take gigabytes."""


@dataclass(frozen=True)
class FillOptions(ReadOptions):
    """How to fill, none of which moves a score."""

    skip_bad_images: bool = False
    progress: Progress = silent
    verify: bool = False
    """Read every image file again, and score one stored image of each block again: do they give what is stored?"""
    ray: RayOptions | None = None
    """Score by Ray's workers (`ray_scorer.on_ray`); None: in this process."""


@dataclass
class Filled:
    """The sheets, and the images that could not be read (address → reason)."""

    matrices: list[ScoreMatrix]
    bad_images: dict[str, str]


def fill(tasks: Sequence[Task], scorer: Scorer, store: Store, options: FillOptions | None = None) -> Filled:
    """Every task's matrix: from the store where it has the cells, from the model where it has not."""
    options = options or FillOptions()
    images = pl.concat([task.dataset.table.select("image_id", "uri") for task in tasks]).unique(
        "uri", maintain_order=True
    )
    uris = images["uri"].to_list()
    with WorkersOnDemand(options) as workers:
        digests = ImageDigests(store.digest_memory, verify=options.verify)
        # Files are hashed when they are read for the model; processes of other devices do not tell digests.
        known = digests.of(uris) if replicas_of(scorer) or options.verify else digests.remembered(uris)
        keys = dict(zip(uris, known, strict=True))
        filler = _Filler(scorer, keys, options, workers, digests)
        if not options.skip_bad_images and None in keys.values():
            filler.refuse_unreadable()
        matrices = (
            _by_product(tasks, uris, store, filler) if isinstance(scorer, Embedder) else _by_pair(tasks, store, filler)
        )
    for matrix, task in zip(matrices, tasks, strict=True):
        _declare_complete(store, scorer, task, matrix, filler)
    return Filled(matrices, filler.bad)


def _by_product(tasks: Sequence[Task], uris: list[str], store: Store, filler: _Filler) -> list[ScoreMatrix]:
    """Contrastive: every image and every text once, then a matrix product."""
    scorer = filler.scorer
    assert isinstance(scorer, Embedder)
    shelf, texts = store.images(scorer.spec), store.texts(scorer.spec)
    filler.fill_images(", ".join(dict.fromkeys(task.dataset.name for task in tasks)), uris, shelf, Asked())
    asked = list(dict.fromkeys(text for task in tasks for text in task.prompts.texts))
    fill_texts(scorer, asked, texts, verify=filler.options.verify)
    matrices = []
    for task in tasks:
        good, words = filler.readable(task), texts.read(task.prompts.texts)["vector"]
        keys = [filler.key(uri) for uri in good["uri"]]
        cells = np.empty((len(keys), len(words), 1), np.float32)
        for start in range(0, len(keys), READ_ROWS):
            part = slice(start, start + READ_ROWS)
            cells[part, :, 0] = cosines(shelf.read(keys[part])["vector"], words)
        matrices.append(_matrix(task, good, scorer, cells))
    return matrices


def fill_texts(scorer: Embedder, texts: list[str], shelf: Shelf, *, verify: bool = False) -> None:
    """Vectors of the texts that the shelf lacks."""
    lacking = shelf.missing(texts)
    if verify and (sample := shelf.one_of_each_block(texts)):
        _compare(shelf, sample, {"vector": scorer.embed_texts(sample)}, scorer)
        lacking = shelf.missing(texts)
    if lacking:
        shelf.check_writable(len(lacking), "texts")
        shelf.merge_small_blocks()
    for start in range(0, len(lacking), BLOCK_ROWS):
        part = lacking[start : start + BLOCK_ROWS]
        vectors = scorer.embed_texts(part)
        refuse_non_finite(vectors, part, scorer)
        shelf.put(part, {"vector": vectors})


def _compare(shelf: Shelf, keys: list[str], now: Mapping[str, Floats], scorer: Scorer) -> None:
    """Distrust the blocks whose rows are not what the model gives now, rounding aside."""
    stored, share = shelf.read(keys), 1e-3 if scorer.spec.precision == "float32" else 2e-2
    far = np.zeros(len(keys), dtype=bool)
    for channel, values in now.items():
        if stored[channel].shape != values.shape:
            far[:] = True
        else:
            room = share * (1e-3 + np.abs(values).max(axis=1))
            far |= np.abs(stored[channel] - values).max(axis=1) > room
    if far.any():
        shelf.distrust([keys[i] for i in np.flatnonzero(far)], "the model now gives other numbers")


def _by_pair(tasks: Sequence[Task], store: Store, filler: _Filler) -> list[ScoreMatrix]:
    """Every other model: all prompts of a task for each image."""
    scorer, matrices = filler.scorer, []
    for place, task in enumerate(tasks):
        texts = task.prompts.texts
        shelf = store.scores(scorer.spec, task.prompts.digest, dict.fromkeys(scorer.channels, len(texts)))
        label, later = f"{task.dataset.name}, {task.name}", sum(len(each.dataset) for each in tasks[place + 1 :])
        filler.fill_images(label, task.dataset.table["uri"].to_list(), shelf, Asked(tuple(texts)), later)
        good = filler.readable(task)
        stored = shelf.read([filler.key(uri) for uri in good["uri"]])
        empty = np.empty((0, len(texts)), np.float32)
        cells = np.stack([stored.get(channel, empty) for channel in scorer.channels], axis=2)
        matrices.append(_matrix(task, good, scorer, cells))
    return matrices


class _Filler:
    """Walks a list of images and puts on a shelf what is missing there."""

    def __init__(
        self,
        scorer: Scorer,
        keys: dict[str, str | None],
        options: FillOptions,
        workers: WorkersOnDemand,
        digests: ImageDigests,
    ) -> None:
        self.scorer, self.options, self._workers, self._digests = scorer, options, workers, digests
        self.bad: dict[str, str] = {uri: "the file does not exist" for uri, key in keys.items() if key is None}
        self._keys = keys

    def key(self, uri: str) -> str:
        """The name of an image's content."""
        key = self._keys[uri]
        assert key is not None
        return key

    def readable(self, task: Task) -> pl.DataFrame:
        """The rows of a task's images that could be read."""
        return task.dataset.table.filter(~pl.col("uri").is_in(list(self.bad)))

    def fill_images(self, label: str, uris: list[str], shelf: Shelf, asked: Asked, later: int = 0) -> None:
        """Batch after batch, block after block; what was computed is on the shelf before any error leaves here."""
        present = [uri for uri in dict.fromkeys(uris) if uri not in self.bad]
        missing = set(shelf.missing([self.key(uri) for uri in present]))
        if self.options.verify and self._verified(present, shelf, asked):
            missing = set(shelf.missing([self.key(uri) for uri in present]))
        size = self.scorer.batch_size
        batches = [present[start : start + size] for start in range(0, len(present), size)]
        todo = [[uri for uri in batch if self.key(uri) in missing] for batch in batches]  # NOT_HASHED always is
        count = sum(map(len, todo))
        if not count:
            return
        shelf.check_writable(count, "images")
        shelf.merge_small_blocks()
        named = f"{self.scorer.spec.name}: {label}"
        progress = self.options.progress(named, len(present), len(present) - count, later)
        with progress as advance, _Block(shelf) as block:
            for scored in self._scored([batch for batch in todo if batch], asked, shelf.has):
                self._learn(scored)
                block.add([self.key(uri) for uri in scored.uris], scored.rows)
                advance(scored.size, *self._news())

    def _verified(self, uris: list[str], shelf: Shelf, asked: Asked) -> bool:
        """Whether there was something to compare: one stored image of each block, which is scored again."""
        by_key = {self.key(uri): uri for uri in uris}
        sample = [by_key[key] for key in shelf.one_of_each_block(list(by_key))]
        size = self.scorer.batch_size
        batches = [sample[start : start + size] for start in range(0, len(sample), size)]
        named = f"{self.scorer.spec.name}: verifying"
        with self.options.progress(named, len(sample), 0) as advance:
            for scored in self._scored(batches, asked, lambda key: False) if batches else ():
                if scored.uris:
                    _compare(shelf, [self.key(uri) for uri in scored.uris], scored.rows, self.scorer)
                advance(scored.size)
        return bool(batches)

    def _scored(self, batches: list[list[str]], asked: Asked, stored: Callable[[str], bool]) -> Iterator[Scored]:
        """By the model at hand, by its copies on several devices, or by Ray."""
        if isinstance(self.scorer, RayScorer):
            yield from self.scorer.scored(batches, asked, self.key, stored)
        elif copies := replicas_of(self.scorer):
            with Replicas(copies, self.options) as replicas:
                yield from replicas.scored(batches, asked)
        else:
            model = BatchScorer(self.scorer, self.options, self._workers)
            yield from model.scored(batches, asked, self.key, stored)

    def _news(self) -> list[str]:
        """What is shown beside the bar."""
        return [self.scorer.pool.alive] if isinstance(self.scorer, RayScorer) else []

    def _learn(self, scored: Scored) -> None:
        """Keep digests that were found on the way, and images that cannot be read; or stop, and name them all."""
        self._keys.update(scored.digests)
        self._digests.remember(scored.digests)
        for fault in scored.faults:
            self.bad[fault.uri] = fault.reason
        if scored.faults and not self.options.skip_bad_images:
            self.refuse_unreadable()

    def refuse_unreadable(self) -> None:
        """Open all images once without the model, so that the message names all that cannot be read."""
        uris = list(self._keys)
        with self.options.progress("looking for all unreadable images", len(uris), 0) as advance:
            raise unreadable_error(self.bad | unreadable(uris, advance), len(uris))


class _Block:
    """Rows on their way to the shelf; written when they are many or old, by a thread, one block at a time.

    On leaving, all rows are on the shelf, whatever happened.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._writer = ThreadPoolExecutor(1)
        self._written: Future[None] | None = None
        self._keys: list[str] = []
        self._rows: list[dict[str, Floats]] = []
        self._since = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._writer:
            self.flush()
            self._wait()

    def add(self, keys: list[str], rows: dict[str, Floats]) -> None:
        if not keys:
            return
        self._keys += keys
        self._rows.append(rows)
        if len(self._keys) >= BLOCK_ROWS or time.monotonic() - self._since > BLOCK_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._keys:
            self._wait()
            names = self._rows[0]
            rows = {name: np.concatenate([rows[name] for rows in self._rows]) for name in names}
            self._written = self._writer.submit(self._shelf.put, self._keys, rows)
        self._keys, self._rows, self._since = [], [], time.monotonic()

    def _wait(self) -> None:
        """Until the last block is on the disk; its error, if there was one."""
        written, self._written = self._written, None
        if written:
            written.result()


def _matrix(task: Task, images: pl.DataFrame, scorer: Scorer, cells: Floats) -> ScoreMatrix:
    settings = scorer.spec.settings
    return ScoreMatrix(
        task.name, images, task.prompts.table, scorer.channels, cells, settings, task.dataset, task.kind, task.part
    )


def _declare_complete(store: Store, scorer: Scorer, task: Task, matrix: ScoreMatrix, filler: _Filler) -> None:
    keys = [filler.key(uri) for uri in matrix.images["uri"]]
    store.complete(
        scorer.spec,
        task.sheet_name(keys),
        {
            "task": task.name,
            "dataset": task.dataset.name,
            "revision": task.dataset.revision,
            "prompts": task.prompts.name,
            "prompts_digest": task.prompts.digest,
            "images": matrix.images.height,
            "contents": len(set(keys)),
            "asked": len(task.dataset),
        },
    )
