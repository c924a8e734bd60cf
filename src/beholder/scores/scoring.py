"""Scoring batches: what a model is asked, batches halved when memory runs out, unusable scores refused by name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.errors import BadImage, ModelError, OutOfMemory, UnusableScore
from beholder.models.scorer import Embedder, Scorer, begun
from beholder.scores.reading import Opened, Pictures, Reader, ReadOptions, Stored, WorkersOnDemand

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Asked:
    """What a model is asked about each image: its scores of these texts, or its vector."""

    texts: tuple[str, ...] | None = None

    def begun(self, scorer: Scorer, pictures: Pictures) -> Callable[[], dict[str, Floats]]:
        """Start on the pictures; what is returned waits for a row per picture, by channel."""
        if self.texts is None:
            assert isinstance(scorer, Embedder)
            vectors = begun(scorer, pictures)
            return lambda: {"vector": vectors()}
        cells = scorer.score_prepared(pictures, self.texts)
        return lambda: {channel: cells[:, :, k] for k, channel in enumerate(scorer.channels)}


class Scored(NamedTuple):
    """Some images and their rows; or images without rows, because they cannot be read or were stored before."""

    size: int
    uris: list[str]
    rows: dict[str, Floats]
    faults: list[BadImage]
    digests: dict[str, str]


class BatchScorer:
    """One model on one device, with whatever reads images for it."""

    def __init__(self, scorer: Scorer, options: ReadOptions, workers: WorkersOnDemand) -> None:
        self.scorer = scorer
        self._reader = Reader(scorer, options, workers)
        self._batch_size = scorer.batch_size

    def scored(
        self, batches: Sequence[list[str]], asked: Asked, key: Callable[[str], str], stored: Stored
    ) -> Iterator[Scored]:
        """Batch after batch; images without rows come before the others of their batch."""
        waiting: deque[Callable[[], Scored]] = deque()
        try:
            for opened in self._reader.read(batches, key, stored):
                for started in self._started(opened, asked):
                    waiting.append(started)
                    if len(waiting) > 1:  # a GPU works on the next batch while this one's rows are put away
                        yield waiting.popleft()()
        except GeneratorExit:
            raise
        except BaseException:  # Ctrl-C too
            with suppress(ModelError):
                yield from (started() for started in waiting)  # what is done is kept
            raise
        yield from (started() for started in waiting)

    def _started(self, opened: Opened, asked: Asked) -> Iterator[Callable[[], Scored]]:
        if left_out := opened.size - len(opened.uris):
            yield lambda: Scored(left_out, [], {}, opened.faults, opened.digests)
        uris, pictures = opened.uris, opened.pictures
        while uris:
            part = uris[: self._batch_size]
            with self._naming(part):
                try:
                    rows = asked.begun(self.scorer, pictures[: self._batch_size])
                except OutOfMemory:
                    self._halve(len(part))
                    continue
            yield partial(self._finished, part, rows, opened.digests)
            uris, pictures = uris[len(part) :], pictures[len(part) :]

    def _finished(self, uris: list[str], rows: Callable[[], dict[str, Floats]], digests: dict[str, str]) -> Scored:
        with self._naming(uris):
            found = rows()
        for values in found.values():
            refuse_non_finite(values, uris, self.scorer)
        return Scored(len(uris), uris, found, [], digests)

    @contextmanager
    def _naming(self, uris: list[str]) -> Iterator[None]:
        """An unusable score is reported with its image."""
        try:
            yield
        except UnusableScore as error:
            raise unusable(uris[error.positions[0]], self.scorer) from error

    def _halve(self, size: int) -> None:
        if size <= 1:
            raise ModelError(
                f"{self.scorer.spec.name} does not fit into memory even with one image at a time.\n"
                "Use a smaller model, a lower --precision, or another --device; what was scored so far is kept."
            )
        self._batch_size = max(1, size // 2)


def refuse_non_finite(values: Floats, names: Sequence[str], scorer: Scorer) -> None:
    """Raise if a row is not all numbers; the error has the row's name."""
    broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if broken.size:
        raise unusable(names[broken[0]], scorer)


def unusable(name: str, scorer: Scorer) -> ModelError:
    """The error for a score that is no number."""
    return ModelError(
        f"{scorer.spec.name} gave NaN or infinite scores for {name!r}.\n"
        "Nothing of it was stored. Try --precision float32; if it persists, the weights are damaged."
    )
