"""A model on Ray: copies of it in workers (`ray_pool.py`), which read the images themselves and give rows back.

Batches are cut here as for one device, and their rows come in order, so that the store is filled as by one device. The
model is only in the workers: what the rest of Beholder asks of a scorer is asked of a worker.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from PIL import Image

from beholder.core.catalog import load_plugins, loaded_plugins
from beholder.core.errors import DataError, ModelError, UsageError
from beholder.datasets.images import unreadable
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Answerer, Embedder, Floats, Prepared, Scorer
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import Instruction
from beholder.scores.executor import usable_cores
from beholder.scores.ray_pool import RayOptions, RayPool, connect
from beholder.scores.reading import ReadOptions, Stored, WorkersOnDemand, nothing_stored
from beholder.scores.scoring import Asked, BatchScorer, Scored

JOBS_PER_WORKER = 8  # so that all workers end at about the same time
BATCHES_AT_ONCE = 32  # batches in a job at most: reading ahead begins anew with each job


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


def _load(name: str, options: LoadOptions, plugins: list[str]) -> _Model:
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


class _Description(NamedTuple):
    spec: ModelSpec
    channels: tuple[str, ...]
    batch_size: int
    notes: list[str]
    uploads_to: str
    embeds: bool
    answers: bool


def _describe(model: _Model, instruction: Instruction | None) -> _Description:
    scorer = model.instructed(instruction).scorer
    return _Description(
        scorer.spec,
        scorer.channels,
        scorer.batch_size,
        list(getattr(scorer, "notes", [])),
        getattr(scorer, "uploads_to", ""),
        isinstance(scorer, Embedder),
        isinstance(scorer, Answerer),
    )


def _described(pool: RayPool[_Model], instruction: Instruction | None) -> RayScorer:
    (description,) = pool.map(_describe, [instruction], workers=1)
    kind = RayEmbedder if description.embeds else RayAnswerer if description.answers else RayScorer
    return kind(pool, description, instruction)


def _call(model: _Model, arguments: tuple[object, ...], *, instruction: Instruction | None, method: str) -> Any:
    return getattr(model.instructed(instruction).scorer, method)(*arguments)


class _Answer(NamedTuple):
    machine: str
    digest: str
    scored: list[Scored]


def _score(
    model: _Model, batches: list[list[tuple[str, bool]]], *, instruction: Instruction | None, asked: Asked
) -> _Answer:
    """In a worker: score batches of images; each image comes with whether it was hashed."""
    instructed, hashed = model.instructed(instruction), {uri: known for batch in batches for uri, known in batch}
    uris = [[uri for uri, _ in batch] for batch in batches]
    scored = instructed.scored(uris, asked, lambda uri: uri if hashed[uri] else "", nothing_stored)
    return _Answer(socket.gethostname(), instructed.scorer.spec.digest, list(scored))


class RayScorer:
    """A model that is in Ray's workers, as a scorer."""

    def __init__(self, pool: RayPool[_Model], description: _Description, instruction: Instruction | None) -> None:
        self.pool, self._instruction = pool, instruction
        self.spec, self.channels, self.batch_size, self._notes, self.uploads_to, *_ = description

    @property
    def notes(self) -> list[str]:
        """Those of the model, and which libraries differ between the workers' machines."""
        return [*self._notes, *self.pool.differences]

    def prepare(self, image: Image.Image) -> Prepared:
        return self._call("prepare", image)

    def score_prepared(self, prepared: Sequence[Prepared], prompts: Sequence[str]) -> Floats:
        cells: Floats = self._call("score_prepared", prepared, prompts)
        return cells

    def _call(self, method: str, *arguments: object) -> Any:
        work = partial(_call, instruction=self._instruction, method=method)
        (answer,) = self.pool.map(work, [arguments], workers=1)
        return answer

    def scored(
        self, batches: Sequence[list[str]], asked: Asked, key: Callable[[str], str], stored: Stored
    ) -> Iterator[Scored]:
        """What the model says about every batch, in order, as by `BatchScorer`."""
        size = min(BATCHES_AT_ONCE, max(1, len(batches) // (JOBS_PER_WORKER * self.pool.fleet.workers)))
        parts = (batches[start : start + size] for start in range(0, len(batches), size))
        jobs = ([[(uri, bool(key(uri))) for uri in batch] for batch in part] for part in parts)
        work = partial(_score, instruction=self._instruction, asked=asked)
        for answer in self.pool.map(work, jobs, names=lambda job: [uri for batch in job for uri, _ in batch]):
            if answer.digest != self.spec.digest:
                raise ModelError(
                    f"{self.spec.name} on {answer.machine} is another model than the one that began: weights, settings "
                    "or precision differ.\nUse the same files and the same kind of device on all machines."
                )
            for scored in answer.scored:
                _refuse_unshared(scored, answer.machine)
                yield _without_stored(scored, stored)


class RayEmbedder(RayScorer):
    """A two-tower model in Ray's workers."""

    def embed_prepared(self, prepared: Sequence[Prepared]) -> Floats:
        vectors: Floats = self._call("embed_prepared", prepared)
        return vectors

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        vectors: Floats = self._call("embed_texts", texts)
        return vectors


class RayAnswerer(RayScorer):
    """A model in Ray's workers that can be instructed how to answer."""

    def instructed(self, instruction: Instruction) -> Scorer:
        return _described(self.pool, instruction)


def _refuse_unshared(scored: Scored, machine: str) -> None:
    """An image that can be read here and not by a worker is no bad image: the worker's machine lacks the file."""
    for fault in scored.faults:
        if not unreadable([fault.uri]):
            raise DataError(
                f"{fault.uri} can be read here, but not by a Ray worker on {machine}: {fault.reason}.\n"
                "Images must be on a disk that all machines share under the same path, or behind a URI."
            )


def _without_stored(scored: Scored, stored: Stored) -> Scored:
    """Leave out images that were hashed on the way and whose content is stored already."""
    known = dict(zip(scored.digests, stored(list(scored.digests.values())), strict=True))
    new = [i for i, uri in enumerate(scored.uris) if not known.get(uri)]
    if len(new) == len(scored.uris):
        return scored
    return scored._replace(
        uris=[scored.uris[i] for i in new], rows={name: row[new] for name, row in scored.rows.items()}
    )
