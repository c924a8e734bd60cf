"""Score what the store lacks. Resume is the normal path: a fresh run is one that lacks everything.

Images are opened and prepared while the model works: in worker processes (`workers.py`) where there are many files,
else in threads. Batches are cut from the whole list, never from what happens to be missing, so that a resumed run sees
the same batches as a fresh one. Blocks are written in a thread of their own.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.digests import content_digest, file_digests
from beholder.core.errors import BadImage, DataError, ModelError, OutOfMemory, UnusableScore
from beholder.core.progress import Progress, silent
from beholder.datasets.dataset import ImageDigests
from beholder.datasets.images import DRAWN, is_plain_file, open_image
from beholder.models.preparation import Decoder, Preparation, fixed_shape
from beholder.models.scorer import Embedder, Prepared, Scorer, cosines, decoder_of, preparation_of
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.store import Shelf, Store
from beholder.scores.task import Task
from beholder.scores.workers import PictureReader, Workers, fits_in_shared_memory, usable_cores

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
Started = TypeVar("Started")
Pictures = Any  # a list of prepared pictures, or an array with a row for each
Compute = Callable[[Pictures], dict[str, Floats]]
BLOCK_ROWS = 256
BLOCK_SECONDS = 10.0
AHEAD_OF_DECODER = 4
"""Batches of files that are read and decoded before the model needs them."""
PROCESSES_FROM = 512
"""Fewer files than this are done in threads before processes would have started."""


@dataclass(frozen=True)
class FillOptions:
    """How to fill, none of which moves a score."""

    skip_bad_images: bool = False
    workers: int = field(default_factory=lambda: min(8, (os.cpu_count() or 2) + 1))
    """Threads that open images."""
    processes: int = field(default_factory=usable_cores)
    """Processes that open images instead where there are many files; 0 for none."""
    progress: Progress = silent


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
    with _WorkersOnDemand(options) as workers:
        digests = ImageDigests(store.digest_memory)
        # A decoder is handed whole files, which are hashed on their way.
        known = digests.remembered(uris) if decoder_of(scorer) else digests.of(uris, workers.hashed)
        keys = dict(zip(uris, known, strict=True))
        filler = _Filler(scorer, keys, options, workers, digests)
        if not options.skip_bad_images:
            _refuse_missing(keys)
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
    filler.fill_images("images", uris, shelf, lambda prepared: {"vector": scorer.embed_prepared(prepared)})
    fill_texts(scorer, list(dict.fromkeys(text for task in tasks for text in task.prompts.texts)), texts)
    matrices = []
    for task in tasks:
        good = filler.readable(task)
        vectors = (
            shelf.read([filler.key(uri) for uri in good["uri"]])["vector"]
            if good.height
            else np.empty((0, 1), np.float32)
        )
        words = texts.read(task.prompts.texts)["vector"]
        cells = cosines(vectors, words) if good.height else np.empty((0, len(task.prompts)), np.float32)
        matrices.append(_matrix(task, good, scorer, cells[:, :, None]))
    return matrices


def fill_texts(scorer: Embedder, texts: list[str], shelf: Shelf) -> None:
    """Vectors of the texts that the shelf lacks."""
    lacking = shelf.missing(texts)
    for start in range(0, len(lacking), BLOCK_ROWS):
        part = lacking[start : start + BLOCK_ROWS]
        vectors = scorer.embed_texts(part)
        _refuse_non_finite(vectors, part, scorer)
        shelf.put(part, {"vector": vectors})


def _by_pair(tasks: Sequence[Task], store: Store, filler: _Filler) -> list[ScoreMatrix]:
    """Every other model: all prompts of a task for each image."""
    scorer, matrices = filler.scorer, []
    for task in tasks:
        shelf = store.scores(scorer.spec, task.prompts.digest)
        texts = task.prompts.texts

        def compute(prepared: Sequence[Prepared], texts: list[str] = texts) -> dict[str, Floats]:
            cells = scorer.score_prepared(prepared, texts)
            return {channel: cells[:, :, k] for k, channel in enumerate(scorer.channels)}

        filler.fill_images(task.name, task.dataset.table["uri"].to_list(), shelf, compute)
        good = filler.readable(task)
        stored = shelf.read([filler.key(uri) for uri in good["uri"]])
        empty = np.empty((0, len(texts)), np.float32)
        cells = np.stack([stored.get(channel, empty) for channel in scorer.channels], axis=2)
        matrices.append(_matrix(task, good, scorer, cells))
    return matrices


class _WorkersOnDemand(ExitStack):
    """The worker processes of one filling, started when the work is first worth it."""

    def __init__(self, options: FillOptions) -> None:
        super().__init__()
        self._count = options.processes

    def pay_for(self, files: int) -> bool:
        """Whether so many files are done sooner with processes than without."""
        return self._count > 0 and files >= PROCESSES_FROM

    @cached_property
    def started(self) -> Workers:
        return self.enter_context(Workers(self._count))

    def hashed(self, paths: Sequence[Path]) -> Iterable[str | None] | None:
        """The files' digests, if processes are worth it."""
        return self.started.map(file_digests, paths, per_job=32) if self.pay_for(len(paths)) else None


class _File(NamedTuple):
    """A file as it was read: its digest, what a decoder takes of it, or why it cannot be read."""

    uri: str
    key: str
    picture: Any = None
    fault: BadImage | None = None


class _ReadingMemory:
    """Room for the files of a few batches, used in turn: fresh memory for every file would cost more than reading."""

    def __init__(self, batches: int) -> None:
        self._arenas = deque(np.empty(0, np.uint8) for _ in range(batches))

    def rooms(self, uris: Sequence[str]) -> list[Bytes]:
        """A place for each file, one byte longer than the file."""
        sizes = [Path(uri).stat().st_size + 1 if is_plain_file(uri) and Path(uri).exists() else 1 for uri in uris]
        if len(self._arenas[0]) < sum(sizes):
            self._arenas[0] = np.empty(sum(sizes) * 5 // 4, np.uint8)
        arena = self._arenas[0]
        self._arenas.rotate(-1)
        return np.split(arena[: sum(sizes)], np.cumsum(sizes)[:-1])


def _read_into(room: Bytes, uri: str) -> Bytes:
    """The file's bytes, in the room if it is as long as it was."""
    with open(uri, "rb", buffering=0) as file:
        size = file.readinto(room.data)
    return room[:size] if size == len(room) - 1 else np.fromfile(uri, np.uint8)


def _read_file(uri: str, key: str, room: Bytes, decoder: Decoder, shelf: Shelf) -> _File:
    """Read and hash a file; without a picture if the shelf already has its content."""
    try:
        data = _read_into(room, uri) if is_plain_file(uri) else None
        key = key or content_digest(cast(Bytes, data).data)
        return _File(uri, key, None if shelf.has(key) else decoder.encoded(uri, data))
    except BadImage as error:
        return _File(uri, key, fault=error)
    except OSError as error:
        return _File(uri, key, fault=BadImage(uri, f"cannot be read: {error.strerror}"))


def _few_ahead(
    batches: Iterable[list[str]], start: Callable[[list[str]], Started], depth: int
) -> Iterator[tuple[list[str], Started]]:
    """Every batch with what `start` made of it, `depth` batches before it is needed."""
    waiting: deque[tuple[list[str], Started]] = deque()
    for batch in batches:
        waiting.append((batch, start(batch)))
        if len(waiting) >= depth:
            yield waiting.popleft()
    yield from waiting


class _Opened(NamedTuple):
    """A batch of images, those that could be read, with their pictures."""

    size: int
    uris: list[str]
    pictures: Pictures


class _Filler:
    """Walks a list of images and puts on a shelf what is missing there."""

    def __init__(
        self,
        scorer: Scorer,
        keys: dict[str, str | None],
        options: FillOptions,
        workers: _WorkersOnDemand,
        digests: ImageDigests,
    ) -> None:
        self.scorer, self.options, self._workers, self._digests = scorer, options, workers, digests
        self.bad: dict[str, str] = {uri: "the file does not exist" for uri, key in keys.items() if key is None}
        self._keys = keys
        self._batch_size = scorer.batch_size
        self._preparation: Preparation | None = preparation_of(scorer)

    def key(self, uri: str) -> str:
        """The name of an image's content."""
        key = self._keys[uri]
        assert key is not None
        return key

    def readable(self, task: Task) -> pl.DataFrame:
        """The rows of a task's images that could be read."""
        return task.dataset.table.filter(~pl.col("uri").is_in(list(self.bad)))

    def fill_images(self, label: str, uris: list[str], shelf: Shelf, compute: Compute) -> None:
        """Batch after batch, block after block; what was computed is on the shelf before any error leaves here."""
        present = [uri for uri in dict.fromkeys(uris) if uri not in self.bad]
        missing = set(shelf.missing([self.key(uri) for uri in present]))
        size = self.scorer.batch_size
        batches = [present[start : start + size] for start in range(0, len(present), size)]
        todo = [[uri for uri in batch if self.key(uri) in missing] for batch in batches]  # NOT_HASHED always is
        count = sum(map(len, todo))
        if not count:
            return
        named = f"{self.scorer.spec.name}: {label}"
        with self.options.progress(named, len(present), len(present) - count) as advance, _Block(shelf) as block:
            for opened in self._opened([batch for batch in todo if batch], shelf):
                self._score(opened.uris, opened.pictures, compute, block)
                advance(opened.size)

    def _opened(self, batches: list[list[str]], shelf: Shelf) -> Iterator[_Opened]:
        """Batches with their images opened and prepared, a few batches ahead."""
        if decoder := decoder_of(self.scorer):
            yield from self._by_decoder(batches, decoder, shelf)
            return
        reader = self._reader(batches)
        if reader is None:
            yield from self._by_threads(batches)
            return
        for batch, rows, faults in reader.read(batches):
            for fault in filter(None, faults):
                self._refuse(fault)
            good = [row for row, fault in enumerate(faults) if fault is None]
            yield _Opened(len(batch), [batch[row] for row in good], rows if len(good) == len(batch) else rows[good])

    def _reader(self, batches: list[list[str]]) -> PictureReader | None:
        """Worker processes for these batches, if they pay and the scorer's preparation can travel to them."""
        files = sum(not uri.startswith(DRAWN) for batch in batches for uri in batch)
        if not self._workers.pay_for(files) or self._preparation is None:
            return None
        if type(self._preparation).__module__ == "__main__":  # workers do not know the user's script
            return None
        kind = fixed_shape(self._preparation)
        if kind is None or not fits_in_shared_memory(max(map(len, batches)), *kind):
            return None
        return PictureReader(self._workers.started, self._preparation, *kind)

    def _by_decoder(self, batches: list[list[str]], decoder: Decoder, shelf: Shelf) -> Iterator[_Opened]:
        """Threads read and hash files, two more decode batches on the device, while the model works."""
        memory = _ReadingMemory(AHEAD_OF_DECODER + 1)
        with ThreadPoolExecutor(max(2, usable_cores())) as readers, ThreadPoolExecutor(2) as decoding:

            def read(part: list[tuple[str, Bytes]]) -> list[_File]:
                return [_read_file(uri, self.key(uri), room, decoder, shelf) for uri, room in part]

            def decoded(parts: list[Future[list[_File]]]) -> tuple[list[_File], Pictures]:
                files = [file for part in parts for file in part.result()]
                pictures = [file.picture for file in files if file.picture is not None]
                return files, decoder.decode(pictures) if pictures else []

            def ahead(batch: list[str]) -> Future[tuple[list[_File], Pictures]]:
                rooms = list(zip(batch, memory.rooms(batch), strict=True))
                parts = [rooms[start : start + 16] for start in range(0, len(rooms), 16)]
                return decoding.submit(decoded, [readers.submit(read, part) for part in parts])

            for batch, future in _few_ahead(batches, ahead, AHEAD_OF_DECODER):
                files, pictures = future.result()
                self._learn_keys(files)
                for fault in filter(None, (file.fault for file in files)):
                    self._refuse(fault)
                yield _Opened(len(batch), [file.uri for file in files if file.picture is not None], pictures)

    def _learn_keys(self, files: Sequence[_File]) -> None:
        fresh = {file.uri: file.key for file in files if file.key and not self._keys[file.uri]}
        self._keys.update(fresh)
        self._digests.remember(fresh)

    def _by_threads(self, batches: list[list[str]]) -> Iterator[_Opened]:
        with ThreadPoolExecutor(self.options.workers) as pool:
            depth = max(2, -(-2 * self.options.workers // max(1, self.scorer.batch_size)))
            try:
                for batch, futures in _few_ahead(
                    batches, lambda batch: [pool.submit(self._open, uri) for uri in batch], depth
                ):
                    pictures = {uri: self._result(future) for uri, future in zip(batch, futures, strict=True)}
                    good = {uri: picture for uri, picture in pictures.items() if picture is not None}
                    yield _Opened(len(batch), list(good), list(good.values()))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _open(self, uri: str) -> Prepared:
        return (self._preparation or self.scorer.prepare)(open_image(uri))

    def _result(self, future: Future[Prepared]) -> Prepared | None:
        """The prepared image, or None for one that cannot be read and may be skipped."""
        try:
            return future.result()
        except BadImage as error:
            self._refuse(error)
            return None

    def _refuse(self, error: BadImage) -> None:
        """Remember an image that cannot be read, or stop there."""
        if not self.options.skip_bad_images:
            raise error
        self.bad[error.uri] = error.reason

    def _score(self, uris: list[str], pictures: Pictures, compute: Compute, block: _Block) -> None:
        while uris:
            part = uris[: self._batch_size]
            try:
                rows = compute(pictures[: self._batch_size])
            except OutOfMemory:
                self._halve(len(part))
                continue
            except UnusableScore as error:
                raise _unusable(part[error.positions[0]], self.scorer) from error
            for values in rows.values():
                _refuse_non_finite(values, part, self.scorer)
            block.add([self.key(uri) for uri in part], rows)
            uris, pictures = uris[len(part) :], pictures[len(part) :]

    def _halve(self, size: int) -> None:
        if size <= 1:
            raise ModelError(
                f"{self.scorer.spec.name} does not fit into memory even with one image at a time.\n"
                "Use a smaller model, a lower --precision, or another --device; what was scored so far is kept."
            )
        self._batch_size = max(1, size // 2)


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


def _refuse_missing(keys: dict[str, str | None]) -> None:
    missing = [uri for uri, key in keys.items() if key is None]
    if missing:
        listed = "\n".join(f"  {uri}" for uri in missing[:10]) + (
            f"\n  … and {len(missing) - 10} more" if len(missing) > 10 else ""
        )
        raise DataError(
            f"{len(missing)} of {len(keys)} image files are not there:\n{listed}\n"
            "Add them, or continue without them: --skip-bad-images."
        )


def _refuse_non_finite(values: Floats, names: Sequence[str], scorer: Scorer) -> None:
    broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if broken.size:
        raise _unusable(names[broken[0]], scorer)


def _unusable(name: str, scorer: Scorer) -> ModelError:
    return ModelError(
        f"{scorer.spec.name} gave NaN or infinite scores for {name!r}.\n"
        "Nothing of it was stored. Try --precision float32; if it persists, the weights are damaged."
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
            "images": matrix.images.height,
            "asked": len(task.dataset),
        },
    )
