"""Scores of an earlier run, read from the store without its model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from beholder.models.scorer import cosines
from beholder.models.spec import ModelSpec
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.store import Store
from beholder.scores.task import Task


def stored_scores(tasks: Sequence[Task], spec: ModelSpec, store: Store) -> list[ScoreMatrix]:
    """Every task's matrix as far as the store has it: images without scores are left out, tasks without any too."""
    if not store.holds(spec):
        return []
    uris = list(dict.fromkeys(uri for task in tasks for uri in task.dataset.table["uri"]))
    keys = dict(zip(uris, store.image_digests().of(uris), strict=True))
    return [made for task in tasks if (made := _stored(task, keys, spec, store)) is not None]


def _stored(task: Task, keys: dict[str, str | None], spec: ModelSpec, store: Store) -> ScoreMatrix | None:
    texts = store.texts(spec)
    contrastive = texts.folder.is_dir()
    shelf = store.images(spec) if contrastive else store.scores(spec, task.prompts.digest)
    own_keys = [keys[uri] or "" for uri in task.dataset.table["uri"]]
    there = ~shelf.lacks(own_keys)
    here = [key for key, known in zip(own_keys, there, strict=True) if known]
    if not here or (contrastive and texts.missing(task.prompts.texts)):
        return None
    words = texts.read(task.prompts.texts)["vector"] if contrastive else None
    parts = []
    for _, rows in shelf.parts(here):
        found = rows if words is None else {"cosine": cosines(rows["vector"], words)}
        parts.append(np.stack(list(found.values()), axis=2))
    return ScoreMatrix(
        task.name,
        task.dataset.table.filter(there),
        task.prompts.table,
        tuple(found),
        np.concatenate(parts),
        spec.settings,
        task.dataset,
        task.kind,
        task.part,
    )
