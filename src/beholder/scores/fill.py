"""Score what the store lacks. Resume is the normal path: a fresh run is one that lacks everything.

Images are read ahead (`reading.py`) and scored in batches (`scoring.py`), on several devices if the model was loaded
so, or by Ray's workers (`ray_pool.py`). Batches are cut from the whole list, never from what happens to be missing,
so that a resumed run sees the same batches as a fresh one. Blocks are written in a thread of their own.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing import get_context
from multiprocessing.queues import Queue
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import NO_FILE, NotAskable
from beholder.core.files import remove_dead
from beholder.core.options import option
from beholder.core.progress import Progress, silent
from beholder.datasets.dataset import ImageDigests
from beholder.datasets.images import DRAWN, unreadable, unreadable_error
from beholder.models.load import Replica, load_model, replicas_of
from beholder.models.scorer import Embedder, Floats, Scorer
from beholder.scores.executor import Processes, prepare_to_start
from beholder.scores.reading import ReadOptions, Stored, WorkersOnDemand, nothing_stored
from beholder.scores.score_matrix import PICTURES, ScoreMatrix, Task
from beholder.scores.scoring import Asked, BatchScorer, RayScorer, Scored, refuse_non_finite
from beholder.scores.shelf import LONGEST, Shelf, hashed
from beholder.scores.store import Store, read_matrix

BATCHES_AT_ONCE = 8  # that a device is given together: its reading ahead begins anew with each such job
LOADING_SECONDS = 3600.0  # after so long without an answer a device is taken to hang; its model is loaded first
BLOCK_ROWS = 256
BLOCK_SECONDS = 10.0
LARGEST_BLOCK = 1 << 23  # bytes: a long run writes larger blocks, so that a million images are not thousands of files
LOOKED_UP = 1 << 15  # images whose digests are looked up together
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FillOptions(ReadOptions):
    """How to fill, none of which moves a score."""

    skip_bad_images: bool = option(False)
    progress: Progress = silent
    verify: bool = option(False)


@dataclass
class Filled:
    """The matrices, the images that could not be read (address → reason), and how many are copies of another."""

    matrices: list[ScoreMatrix]
    bad_images: dict[str, str]
    copies: int = 0


def fill(tasks: Sequence[Task], scorer: Scorer, store: Store, options: FillOptions | None = None) -> Filled:
    """Every task's matrix: from the store where it has the cells, from the model where it has not."""
    options = options or FillOptions()
    remove_dead(store.root / scorer.spec.digest, "**/.*.part")
    digests = store.image_digests(verify=options.verify)
    try:
        with WorkersOnDemand(options) as workers:
            # Files are hashed when they are read for the model; processes of other devices do not tell digests.
            ask = digests.of if replicas_of(scorer) or options.verify else digests.remembered
            uris = pl.concat([task.dataset.table["uri"] for task in tasks]).unique(maintain_order=True)
            if workers.worth_starting(int((~uris.str.starts_with(DRAWN)).sum())):
                prepare_to_start()
            images = _Images(uris, ask)
            filler = _Filler(scorer, images, options, workers, digests)
            if not options.skip_bad_images and filler.bad:
                filler.refuse_unreadable()
            matrices = (_by_product if isinstance(scorer, Embedder) else _by_pair)(tasks, store, filler)
    finally:
        digests.close()
    copies = 0
    for matrix, task in zip(matrices, tasks, strict=True):
        keys = images.at(images.rows(matrix.images["uri"]))
        names = {"dataset": task.dataset.name, "revision": task.dataset.revision, "prompts": task.prompts.name}
        counts = {"images": matrix.images.height, "contents": len(np.unique(hashed(keys))), "asked": len(task.dataset)}
        manifest = {"task": task.name, **names, "prompts_digest": task.prompts.digest, **counts}
        copies = max(copies, matrix.images.height - int(counts["contents"]))
        store.complete(scorer.spec, task.matrix_name(keys), manifest)
    return Filled(matrices, filler.bad, copies)


def _by_product(tasks: Sequence[Task], store: Store, filler: "_Filler") -> list[ScoreMatrix]:
    """Contrastive: every image and every text once, then a matrix product."""
    scorer = filler.scorer
    assert isinstance(scorer, Embedder)
    shelf, texts = store.images(scorer.spec), store.texts(scorer.spec)
    names = ", ".join(dict.fromkeys(task.dataset.name for task in tasks))
    asked = list(dict.fromkeys(text for task in tasks if task.kind != PICTURES for text in task.prompts.texts))
    fill_texts(scorer, asked, texts, verify=filler.options.verify)  # first: a model that reads none says so at once
    filler.fill_images(names, filler.images.uris, shelf, Asked())
    filler.workers.dismiss()
    return [filler.matrix(task, shelf, texts) for task in tasks]


def fill_texts(scorer: Embedder, texts: list[str], shelf: Shelf, *, verify: bool = False) -> None:
    """Vectors of the texts that the shelf lacks."""
    lacking = shelf.missing(texts)
    if verify and (sample := [texts[i] for i in shelf.one_of_each_block(texts)]):
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


def _by_pair(tasks: Sequence[Task], store: Store, filler: "_Filler") -> list[ScoreMatrix]:
    """Every other model: all prompts of a task for each image."""
    scorer, matrices = filler.scorer, []
    for place, task in enumerate(tasks):
        if task.kind == PICTURES and scorer.spec.adapter != "null":
            raise NotAskable(
                f"{scorer.spec.name} has no vectors of pictures, which {task.name} compares on {task.dataset.name}.\n"
                "Models with vectors are contrastive ones and image encoders."
            )
        texts = task.prompts.texts
        shelf = store.scores(scorer.spec, task.prompts.digest, dict.fromkeys(scorer.channels, len(texts)))
        label, later = f"{task.dataset.name}, {task.name}", sum(len(each.dataset) for each in tasks[place + 1 :])
        filler.fill_images(label, task.dataset.table["uri"], shelf, Asked(tuple(texts)), later)
        matrices.append(filler.matrix(task, shelf))
    return matrices


class _Images:
    """The images of a filling and the names of their contents, in columns: a million as strings take 500 MB."""

    def __init__(self, uris: pl.Series, ask: Callable[[Sequence[str]], list[str | None]]) -> None:
        self.uris, self.absent = uris, list[str]()
        self.keys = np.zeros(len(uris), f"S{LONGEST}")
        for start in range(0, len(uris), LOOKED_UP):
            part = uris[start : start + LOOKED_UP].to_list()
            found = ask(part)
            self.keys[start : start + len(part)] = [key or "" for key in found]
            self.absent += [uri for uri, key in zip(part, found, strict=True) if key is None]
        hashes = np.fromiter(map(hash, uris), np.int64, len(uris))
        self._order = np.argsort(hashes).astype(np.int32)
        self._hashes = hashes[self._order].data  # Python's own search is the quickest for one

    def row(self, uri: str) -> int:
        number = hash(uri)
        place = bisect_left(self._hashes, number)
        while self.uris[row := int(self._order[place])] != uri:  # another of the same hash
            place += 1
        return row

    def rows(self, uris: pl.Series) -> Rows:
        if len(uris) == len(self.uris) and uris.equals(self.uris):
            return np.arange(len(uris))
        return np.fromiter(map(self.row, uris), np.int64, len(uris))

    def at(self, rows: Rows) -> npt.NDArray[np.bytes_]:
        """The names of the contents of some rows; all of them are not copied."""
        return self.keys if np.array_equal(rows, np.arange(len(self.keys))) else self.keys[rows]


class _Batches(Sequence[list[str]]):
    """Batches of the images that lack scores, made when they are asked for; cut from the whole list."""

    def __init__(self, images: _Images, rows: Rows, lacking: npt.NDArray[np.bool_], size: int) -> None:
        parts = (slice(start, start + size) for start in range(0, len(rows), size))
        self._uris, self._batches = images.uris, [rows[part][lacking[part]] for part in parts if lacking[part].any()]

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        return self._uris.gather(self._batches[index]).to_list()


class _Filler:
    """Walks a list of images and puts on a shelf what is missing there."""

    def __init__(
        self, scorer: Scorer, images: _Images, options: FillOptions, workers: WorkersOnDemand, digests: ImageDigests
    ) -> None:
        self.scorer, self.options, self.workers, self._digests = scorer, options, workers, digests
        self.bad = dict.fromkeys(images.absent, NO_FILE)
        self.images = images

    def key(self, uri: str) -> str:
        """The name of an image's content; NOT_HASHED for one that is going to be read."""
        key: bytes = self.images.keys[self.images.row(uri)]
        if not key:
            self._digests.expect(uri)
        return key.decode()

    def matrix(self, task: Task, shelf: Shelf, texts: Shelf | None = None) -> ScoreMatrix:
        """A task's matrix, of the images that could be read."""
        uris = task.dataset.table["uri"]
        good = ~uris.is_in(list(self.bad)).to_numpy()
        return read_matrix(task, self.images.at(self.images.rows(uris)), good, shelf, texts, self.scorer.spec)

    def fill_images(self, label: str, uris: pl.Series, shelf: Shelf, asked: Asked, later: int = 0) -> None:
        """Batch after batch, block after block; what was computed is on the shelf before any error leaves here."""
        present = self.images.rows(uris.unique(maintain_order=True))
        if self.bad:
            present = present[~np.isin(present, [self.images.row(uri) for uri in self.bad])]
        lacking = shelf.lacks(self.images.at(present))  # NOT_HASHED always is
        if self.options.verify and self._verified(present, shelf, asked):
            lacking = shelf.lacks(self.images.at(present))
        count = int(lacking.sum())
        if not count:
            return
        shelf.check_writable(count, "images")
        shelf.merge_small_blocks()
        named = f"{self.scorer.spec.name}: {label}"
        with self.options.progress(named, len(present), len(present) - count, later) as advance, _Block(shelf) as block:
            batches = _Batches(self.images, present, lacking, self.scorer.batch_size)
            for scored in self._scored(batches, asked, shelf.has):
                self._learn(scored)
                block.add([self.key(uri) for uri in scored.uris], scored.rows)
                beside = [self.scorer.pool.alive] if isinstance(self.scorer, RayScorer) else []
                advance(scored.size, *beside)

    def _verified(self, rows: Rows, shelf: Shelf, asked: Asked) -> bool:
        """Whether there was something to compare: one stored image of each block, which is scored again."""
        sample = rows[shelf.one_of_each_block(self.images.keys[rows])]
        batches = _Batches(self.images, sample, np.ones(len(sample), bool), self.scorer.batch_size)
        with self.options.progress(f"{self.scorer.spec.name}: verifying", len(sample), 0) as advance:
            for scored in self._scored(batches, asked, nothing_stored) if batches else ():
                if scored.uris:
                    _compare(shelf, [self.key(uri) for uri in scored.uris], scored.rows, self.scorer)
                advance(scored.size)
        return bool(batches)

    def _scored(self, batches: Sequence[list[str]], asked: Asked, stored: Stored) -> Iterator[Scored]:
        """By the model at hand, by its copies on several devices, or by Ray."""
        if isinstance(self.scorer, RayScorer):
            yield from self.scorer.scored(batches, asked, self.key, stored)
        elif copies := replicas_of(self.scorer):
            yield from _scored_on_devices(copies, self.options, batches, asked)
        else:
            yield from BatchScorer(self.scorer, self.options, self.workers).scored(batches, asked, self.key, stored)

    def _learn(self, scored: Scored) -> None:
        """Keep digests that were found on the way, and images that cannot be read; or stop, and name them all."""
        for uri, key in scored.digests.items():
            self.images.keys[self.images.row(uri)] = key
        self._digests.remember(scored.digests)
        for fault in scored.faults:
            self.bad[fault.uri] = fault.reason
        if scored.faults and not self.options.skip_bad_images:
            self.refuse_unreadable()

    def refuse_unreadable(self) -> None:
        """Open all images once without the model, so that the message names all that cannot be read."""
        uris = self.images.uris.to_list()
        with self.options.progress("looking for all unreadable images", len(uris), 0) as advance:
            raise unreadable_error(self.bad | unreadable(uris, advance), len(uris))


class _Block:
    """Rows on their way to the shelf, written by a thread when they are many or old; on leaving, all are there."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._writer = ThreadPoolExecutor(1)
        self._written: Future[None] | None = None
        self._keys: list[str] = []
        self._rows: list[dict[str, Floats]] = []
        self._since, self._put = time.monotonic(), 0

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
        bytes_per_row = 1 + sum(values[0].nbytes for values in rows.values())
        enough = max(BLOCK_ROWS, min(self._put // 8, LARGEST_BLOCK // bytes_per_row))
        if len(self._keys) >= enough or time.monotonic() - self._since > BLOCK_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._keys:
            self._wait()
            rows = {name: np.concatenate([rows[name] for rows in self._rows]) for name in self._rows[0]}
            self._written = self._writer.submit(self._shelf.put, self._keys, rows)
            self._put += len(self._keys)
        self._keys, self._rows, self._since = [], [], time.monotonic()

    def _wait(self) -> None:
        written, self._written = self._written, None
        if written:
            written.result()


# Several devices: a process for each

_device_scorer: BatchScorer | None = None


def _scored_on_devices(
    replicas: list[Replica], options: ReadOptions, batches: Sequence[list[str]], asked: Asked
) -> Iterator[Scored]:
    waiting = get_context("spawn").Queue()
    for replica in replicas:
        waiting.put(replica)
    start = partial(_load, waiting, ReadOptions(options.threads, options.processes // len(replicas)))
    does = "runs the model on a device"
    jobs = [batches[start : start + BATCHES_AT_ONCE] for start in range(0, len(batches), BATCHES_AT_ONCE)]
    with Processes(len(replicas), does=does, patience=LOADING_SECONDS, start=start) as devices:
        answers = devices.map(partial(_score, asked=asked), jobs, names=lambda job: list(chain.from_iterable(job)))
        yield from chain.from_iterable(answers)


def _load(waiting: "Queue[Replica]", options: ReadOptions) -> None:
    global _device_scorer
    replica = waiting.get()
    _device_scorer = BatchScorer(load_model(replica.name, replica.options), options, WorkersOnDemand(options))


def _score(batches: Sequence[list[str]], asked: Asked) -> list[Scored]:
    assert _device_scorer is not None
    return list(_device_scorer.scored(batches, asked, lambda uri: uri, nothing_stored))
