"""Reading ahead: batches of images are opened and prepared while the model works on the batch before.

Where there are many files and the preparation can travel, worker processes do it (`workers.py`). A scorer with a
decoder is handed whole files (`whole_files.py`). All else is done in threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

from PIL.Image import Image

from beholder.core.digests import content_digest
from beholder.core.errors import BadImage
from beholder.datasets.content import read_content
from beholder.datasets.images import DRAWN, open_image
from beholder.models.preparation import Decoder, fixed_shape
from beholder.models.scorer import Prepared, Scorer, decoder_of, preparation_of
from beholder.scores.whole_files import File, FileReader, ReadFiles, ThreadedFileReader, files_fit
from beholder.scores.workers import PictureReader, Workers, pictures_fit, prepare_to_start, usable_cores

Batch = TypeVar("Batch")
Started = TypeVar("Started")
Pictures = Any  # a list of prepared pictures, or an array with a row for each
AHEAD_OF_DECODER = 3
"""Batches of files that are read before they are decoded."""
AHEAD_OF_MODEL = 3
"""Batches that are decoded before the model needs them."""
PROCESSES_FROM = 512
"""Fewer files than this are done in threads before processes would have started."""


@dataclass(frozen=True)
class ReadOptions:
    """How images are opened; moves no score."""

    workers: int = field(default_factory=lambda: min(8, (os.cpu_count() or 2) + 1))
    """Threads that open images."""
    processes: int = field(default_factory=usable_cores)
    """Processes that open images instead where there are many files; 0 for none."""


class Opened(NamedTuple):
    """The images of a batch that could be read, with their pictures."""

    size: int
    uris: list[str]
    pictures: Pictures
    faults: list[BadImage]
    digests: dict[str, str]
    """Of the files that were not hashed before."""


class WorkersOnDemand(ExitStack):
    """The worker processes of one filling, started when the work is first worth it."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__()
        self._count = options.processes

    def expect(self, files: int) -> None:
        """So many files may have to be opened soon."""
        if self.pay_for(files):
            prepare_to_start()

    def dismiss(self) -> None:
        """No more files are opened: processes end while other work goes on."""
        if "started" in vars(self):
            self.started.dismiss()

    def pay_for(self, files: int) -> bool:
        """Whether so many files are done sooner with processes than without."""
        return self._count > 0 and files >= PROCESSES_FROM

    @cached_property
    def started(self) -> Workers:
        """The processes, started now if they were not."""
        return self.enter_context(Workers(self._count))


class Reader:
    """Opens batches of images for one scorer."""

    def __init__(self, scorer: Scorer, options: ReadOptions, workers: WorkersOnDemand) -> None:
        self._scorer, self._options, self._workers = scorer, options, workers
        self._decoder, self._preparation = decoder_of(scorer), preparation_of(scorer)

    def read(
        self, batches: Sequence[list[str]], key: Callable[[str], str], stored: Callable[[str], bool]
    ) -> Iterator[Opened]:
        """Batch after batch, in order. Files without a key are hashed; those that are `stored` are left out then."""
        if self._decoder:
            return self._by_decoder(batches, self._decoder, key, stored)
        reader = self._picture_reader(batches)
        if reader:
            return self._by_processes(batches, reader, key, stored)
        return self._by_threads(batches, key, stored)

    def _picture_reader(self, batches: Sequence[list[str]]) -> PictureReader | None:
        """Worker processes for these batches, if they pay and the scorer's preparation can travel to them."""
        files = sum(not uri.startswith(DRAWN) for batch in batches for uri in batch)
        if not self._workers.pay_for(files) or self._preparation is None:
            return None
        if type(self._preparation).__module__ == "__main__":  # workers do not know the user's script
            return None
        kind = fixed_shape(self._preparation)
        if kind is None or not pictures_fit(max(map(len, batches)), *kind):
            return None
        return PictureReader(self._workers.started, self._preparation, *kind)

    def _by_processes(
        self,
        batches: Sequence[list[str]],
        reader: PictureReader,
        key: Callable[[str], str],
        stored: Callable[[str], bool],
    ) -> Iterator[Opened]:
        for batch, rows, answers in reader.read(batches, hashed=lambda uri: bool(key(uri))):
            good = [
                row for row, (fault, fresh) in enumerate(answers) if fault is None and not (fresh and stored(fresh))
            ]
            pictures = rows if len(good) == len(batch) else rows[good]
            faults = [fault for fault, _ in answers if fault]
            digests = {uri: fresh for uri, (_, fresh) in zip(batch, answers, strict=True) if fresh}
            yield Opened(len(batch), [batch[row] for row in good], pictures, faults, digests)

    def _by_threads(
        self, batches: Sequence[list[str]], key: Callable[[str], str], stored: Callable[[str], bool]
    ) -> Iterator[Opened]:
        prepare = self._preparation or self._scorer.prepare

        def read(uri: str) -> File:
            return _opened_file(uri, key(uri), prepare, stored)

        with ThreadPoolExecutor(self._options.workers) as pool:
            depth = max(2, -(-2 * self._options.workers // max(1, self._scorer.batch_size)))
            try:
                for futures in _few_ahead(batches, lambda batch: [pool.submit(read, uri) for uri in batch], depth):
                    files = [future.result() for future in futures]
                    yield _opened_batch(files, [file.picture for file in files if file.picture is not None], key)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _by_decoder(
        self, batches: Sequence[list[str]], decoder: Decoder, key: Callable[[str], str], stored: Callable[[str], bool]
    ) -> Iterator[Opened]:
        """Files are read and hashed ahead, and two threads decode batches on the device while the model works."""

        def read(batch: list[str]) -> ReadFiles:
            return files.begin(batch, [key(uri) for uri in batch])

        def decoded(files: list[File]) -> tuple[list[File], Pictures]:
            pictures = [file.picture for file in files if file.picture is not None]
            return files, decoder.decode(pictures) if pictures else []

        def left_to_do(begun: ReadFiles) -> list[File]:
            return [f._replace(picture=None) if f.key and stored(f.key) else f for f in files.finish(begun)]

        with self._files(batches, decoder) as files, ThreadPoolExecutor(2) as decoding:
            ready = map(left_to_do, _few_ahead(batches, read, AHEAD_OF_DECODER))
            for future in _few_ahead(ready, lambda files: decoding.submit(decoded, files), AHEAD_OF_MODEL):
                yield _opened_batch(*future.result(), key)

    def _files(self, batches: Sequence[list[str]], decoder: Decoder) -> FileReader | ThreadedFileReader:
        together = AHEAD_OF_DECODER + AHEAD_OF_MODEL
        if self._workers.pay_for(sum(map(len, batches))) and files_fit(max(batches, key=len), together):
            return FileReader(self._workers.started, decoder.encoding, together)
        return ThreadedFileReader(decoder.encoding, together)


def _opened_batch(files: Sequence[File], pictures: Pictures, key: Callable[[str], str]) -> Opened:
    fresh = {file.uri: file.key for file in files if file.key and not key(file.uri)}
    uris = [file.uri for file in files if file.picture is not None]
    return Opened(len(files), uris, pictures, [file.fault for file in files if file.fault], fresh)


def _opened_file(uri: str, key: str, prepare: Callable[[Image], Prepared], stored: Callable[[str], bool]) -> File:
    """Open and prepare a picture; without one if its content is stored already."""
    try:
        data = None if key else read_content(uri)
        key = key or content_digest(cast(bytes, data))
        return File(uri, key, None if data is not None and stored(key) else prepare(open_image(uri, data)))
    except BadImage as error:
        return File(uri, key, fault=error)


def _few_ahead(batches: Iterable[Batch], start: Callable[[Batch], Started], depth: int) -> Iterator[Started]:
    """What `start` makes of every batch, started `depth` batches before it is needed."""
    waiting: deque[Started] = deque()
    for batch in batches:
        waiting.append(start(batch))
        if len(waiting) >= depth:
            yield waiting.popleft()
    yield from waiting
