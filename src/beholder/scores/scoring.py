"""Scoring batches: what a model is asked, batches halved when memory runs out, unusable scores refused by name.

On Ray, copies of the model are in workers (`ray_pool.py`), which read the images themselves and give rows back. Batches
are cut here as for one device, and their rows come in order, so that the store is filled as by one device. The model is
only in the workers: what the rest of Beholder asks of a scorer is asked of a worker.
"""

import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from beholder.core.catalog import load_plugins, loaded_plugins
from beholder.core.errors import OTHER_SHAPE, BadImage, DataError, ModelError, OutOfMemory, UnusableScore, UsageError
from beholder.datasets.images import unreadable
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Answerer, Embedder, Floats, Prepared, Scorer, start_embedding
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import Instruction
from beholder.scores.executor import usable_cores
from beholder.scores.ray_pool import RayOptions, RayPool, connect
from beholder.scores.reading import Opened, Pictures, Reader, ReadOptions, Stored, WorkersOnDemand, nothing_stored

JOBS_PER_WORKER = 8  # so that all workers end at about the same time
BATCHES_AT_ONCE = 32  # batches in a job at most: reading ahead begins anew with each job


@dataclass(frozen=True)
class Asked:
    """What a model is asked about each image: its scores of these texts, or its vector."""

    texts: tuple[str, ...] | None = None

    def start(self, scorer: Scorer, pictures: Pictures) -> Callable[[], dict[str, Floats]]:
        """Start on the pictures; what is returned waits for a row per picture, by channel."""
        if self.texts is None:
            assert isinstance(scorer, Embedder)
            vectors = start_embedding(scorer, pictures)
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
                    rows = asked.start(self.scorer, pictures[: self._batch_size])
                except OutOfMemory as error:
                    if len(part) == 1:
                        raise ModelError(
                            f"{self.scorer.spec.name} does not fit into memory even with one image at a time.\nUse a "
                            "smaller model, a lower --precision, or another --device; what was scored so far is kept."
                        ) from error
                    self._batch_size = len(part) // 2
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
            raise unusable(uris[error.positions[0]], self.scorer, error.fault) from error


def refuse_non_finite(values: Floats, names: Sequence[str], scorer: Scorer) -> None:
    """Raise if a row is not all numbers; the error has the row's name."""
    broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if broken.size:
        raise unusable(names[broken[0]], scorer)


def unusable(name: str, scorer: Scorer, fault: str = "") -> ModelError:
    """The error for a score that is no number, or for a picture that the model's code failed on."""
    if fault:
        return ModelError(f"{scorer.spec.name} cannot score {name!r}: {fault}.\n{OTHER_SHAPE}")
    return ModelError(
        f"{scorer.spec.name} gave NaN or infinite scores for {name!r}.\n"
        "Nothing of it was stored. Try --precision float32; if it persists, the weights are damaged."
    )


# On Ray


@contextmanager
def on_ray(model: str | Scorer, load: LoadOptions, ray: RayOptions) -> Iterator[Scorer]:
    """A model in workers of Ray, ready to score; the workers end with the block."""
    if not isinstance(model, str):
        raise UsageError(
            f"{model.spec.name} is an object in this process, which Ray's workers do not have.\n"
            "Save it and give its folder or name, or leave --engine ray out."
        )
    if load.device.startswith("cuda:") or "," in load.device:
        raise UsageError(f"With --engine ray, Ray chooses the GPUs: leave out --device {load.device}.")
    needs_gpu = {"cpu": False, "cuda": True}.get(load.device)
    with RayPool(partial(_load, model, load, loaded_plugins), ray, needs_gpu=needs_gpu) as pool:
        yield _described(pool, None)


def _load(name: str, options: LoadOptions, plugins: list[str]) -> "_Model":
    load_plugins(plugins)
    no_gpu = options.device == "auto" and not _resources().get("GPU")  # Ray does not hide the GPUs from it
    return _Model(load_model(name, replace(options, device="cpu") if no_gpu else options))


class _Model:
    """In a worker: the model, as it is instructed, with what reads images for it."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer, self._reading = scorer, ReadOptions(processes=_cores())
        self._workers = WorkersOnDemand(self._reading)
        self._instructed: dict[Instruction | None, BatchScorer] = {}

    def instructed(self, instruction: Instruction | None) -> BatchScorer:
        if instruction not in self._instructed:
            scorer = self._scorer
            if instruction is not None:
                assert isinstance(scorer, Answerer)
                scorer = scorer.instructed(instruction)
            self._instructed[instruction] = BatchScorer(scorer, self._reading, self._workers)
        return self._instructed[instruction]


def _resources() -> dict[str, float]:
    given: dict[str, float] = connect().get_runtime_context().get_assigned_resources()
    return given


def _cores() -> int:
    """This worker's share of its machine's cores: those that it was given, or as large a part as of the GPUs."""
    ray, mine = connect(), _resources()
    if not mine.get("GPU"):
        return int(mine.get("CPU", 1))
    here = ray.get_runtime_context().get_node_id()
    gpus = next((node["Resources"].get("GPU", 1) for node in ray.nodes() if node["NodeID"] == here), 1)
    return max(1, int(usable_cores() * mine["GPU"] / gpus))


def _describe(model: _Model, instruction: Instruction | None) -> tuple["type[RayScorer]", tuple[Any, ...]]:
    scorer = model.instructed(instruction).scorer
    kind = RayEmbedder if isinstance(scorer, Embedder) else RayAnswerer if isinstance(scorer, Answerer) else RayScorer
    notes, uploads_to = list(getattr(scorer, "notes", [])), getattr(scorer, "uploads_to", "")
    return kind, (scorer.spec, scorer.channels, scorer.batch_size, notes, uploads_to)


def _described(pool: RayPool[_Model], instruction: Instruction | None) -> "RayScorer":
    ((kind, facts),) = pool.map(_describe, [instruction], workers=1)
    return kind(pool, instruction, *facts)


def _call(model: _Model, arguments: tuple[object, ...], *, instruction: Instruction | None, method: str) -> Any:
    return getattr(model.instructed(instruction).scorer, method)(*arguments)


def _score(
    model: _Model, batches: list[list[tuple[str, bool]]], *, instruction: Instruction | None, asked: Asked
) -> tuple[str, str, list[Scored]]:
    """In a worker, whose machine and model it tells: score images, each of which comes with whether it was hashed."""
    instructed, hashed = model.instructed(instruction), {uri: known for batch in batches for uri, known in batch}
    uris = [[uri for uri, _ in batch] for batch in batches]
    scored = instructed.scored(uris, asked, lambda uri: uri if hashed[uri] else "", nothing_stored)
    return socket.gethostname(), instructed.scorer.spec.digest, list(scored)


@dataclass
class RayScorer:
    """A model that is in Ray's workers, as a scorer."""

    pool: RayPool[_Model]
    instruction: Instruction | None
    spec: ModelSpec
    channels: tuple[str, ...]
    batch_size: int
    model_notes: list[str]
    uploads_to: str

    @property
    def notes(self) -> list[str]:
        """Those of the model, and which libraries differ between the workers' machines."""
        return [*self.model_notes, *self.pool.differences]

    def prepare(self, image: Image.Image) -> Prepared:
        return self._call("prepare", image)

    def score_prepared(self, prepared: Sequence[Prepared], prompts: Sequence[str]) -> Floats:
        return np.asarray(self._call("score_prepared", prepared, prompts))

    def _call(self, method: str, *arguments: object) -> Any:
        work = partial(_call, instruction=self.instruction, method=method)
        (answer,) = self.pool.map(work, [arguments], workers=1)
        return answer

    def scored(
        self, batches: Sequence[list[str]], asked: Asked, key: Callable[[str], str], stored: Stored
    ) -> Iterator[Scored]:
        """What the model says about every batch, in order, as by `BatchScorer`."""
        size = min(BATCHES_AT_ONCE, max(1, len(batches) // (JOBS_PER_WORKER * self.pool.fleet.workers)))
        parts = (batches[start : start + size] for start in range(0, len(batches), size))
        jobs = ([[(uri, bool(key(uri))) for uri in batch] for batch in part] for part in parts)
        work = partial(_score, instruction=self.instruction, asked=asked)
        answers = self.pool.map(work, jobs, names=lambda job: [uri for batch in job for uri, _ in batch])
        for machine, digest, answer in answers:
            if digest != self.spec.digest:
                raise ModelError(
                    f"{self.spec.name} on {machine} is another model than the one that began: weights, settings "
                    "or precision differ.\nUse the same files and the same kind of device on all machines."
                )
            for scored in answer:
                for fault in scored.faults:
                    if not unreadable([fault.uri]):
                        raise DataError(
                            f"{fault.uri} can be read here, but not by a Ray worker on {machine}: "
                            f"{fault.reason}.\nImages must be on a disk that all machines share under the same path, "
                            "or behind a URI."
                        )
                # Images that were hashed on the way, and whose content is stored already, are left out.
                known = dict(zip(scored.digests, stored(list(scored.digests.values())), strict=True))
                new = [i for i, uri in enumerate(scored.uris) if not known.get(uri)]
                rows = {name: row[new] for name, row in scored.rows.items()}
                yield scored._replace(uris=[scored.uris[i] for i in new], rows=rows)


class RayEmbedder(RayScorer):
    """A two-tower model in Ray's workers."""

    def embed_prepared(self, prepared: Sequence[Prepared]) -> Floats:
        return np.asarray(self._call("embed_prepared", prepared))

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        return np.asarray(self._call("embed_texts", texts))


class RayAnswerer(RayScorer):
    """A model in Ray's workers that can be instructed how to answer."""

    def instructed(self, instruction: Instruction) -> Scorer:
        return _described(self.pool, instruction)
