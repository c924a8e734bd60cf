"""The scores behind a run, found by its record: which data, prompts and models they are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.core.errors import MissingData
from beholder.core.files import Place
from beholder.core.record import Record
from beholder.core.types import Fields
from beholder.datasets import DATASETS, load_dataset, own_data
from beholder.datasets.dataset import Dataset
from beholder.models.scorer import cosines
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import SCHEMA as PROMPT
from beholder.prompts.prompt_set import PromptSet
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.scores.store import Store


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
    images = task.dataset.table.filter(there)
    return task.matrix(np.concatenate(parts), tuple(found), images=images, settings=spec.settings)


_SPEC = ("name", "adapter", "weights", "revision", "precision", "settings")


@dataclass(frozen=True)
class Places:
    """Where pictures and scores lie."""

    data: Path | None = None
    store: Place = Path("beholder-store")
    settings: Mapping[str, str] = field(default_factory=dict)


class Scored(NamedTuple):
    """A prompt set that was asked of one model on one data set."""

    study: str
    spec: ModelSpec
    task: Task
    root: Path | None  # the folder that its pictures lie in; None for drawn people


def recorded(record: Record, prompts: pl.DataFrame, places: Places) -> Iterator[Scored]:
    """Everything that a run asked of models; scores made elsewhere are not in a store."""
    for entry in record.datasets:
        dataset, root = _opened(entry, places)
        asked = prompts.filter(dataset=dataset.name)
        for (study, name), table in asked.group_by(["study", "set"], maintain_order=True):
            task = Task(str(name), dataset, PromptSet(str(name), table.select(list(PROMPT))))
            for model in record.models:
                if set(_SPEC) <= set(model):
                    yield Scored(str(study), ModelSpec(**{key: model[key] for key in _SPEC}), task, root)


def _opened(entry: Fields, places: Places) -> tuple[Dataset, Path | None]:
    """A data set of the record, and the folder that its pictures must lie in."""
    name, origin = str(entry.get("name")), str(entry.get("origin"))
    source = name if name in DATASETS else origin
    dataset = load_dataset(source, places.data, places.settings)
    if source in DATASETS and DATASETS[source].embedded:
        return dataset, None
    root = places.data if source in DATASETS else Path(own_data(source)[1])
    assert root is not None
    folder = root if root.is_dir() else root.parent
    return replace(dataset, partial=True).present(), folder.resolve()


def scores_of(asked: Iterable[Scored], stores: Sequence[Place], wanted: Mapping[str, str | None]) -> pl.DataFrame:
    """The raw scores with their labels, from whichever store has them; `wanted` names study, model, data set."""
    frames = [
        _tidy(matrix).select(*(pl.lit(value).alias(name) for name, value in whose.items()), pl.all())
        for study, spec, task, _ in asked
        for whose in [{"study": study, "model": spec.name, "dataset": task.dataset.name}]
        if all(value in (None, whose[name]) for name, value in wanted.items())
        for store in stores
        for matrix in stored_scores([task], spec, Store(store))
    ]
    if not frames:
        raise MissingData(
            f"{' and '.join(map(str, stores))} has no scores of this run.\nName the store that the audit used, "
            "store=DIR, or audit again. Scores that were read from files (beholder measure) are in those files."
        )
    return pl.concat(frames, how="diagonal")


def _tidy(matrix: ScoreMatrix) -> pl.DataFrame:
    """One row for every image, prompt and channel, with the image's attributes and what the prompt stands for.

    An attribute that has the name of a prompt's column keeps it; the prompt's is called `NAME_of_prompt`.
    """
    images = matrix.images
    prompts = matrix.prompts.select(name for name in matrix.prompts.columns if matrix.prompts[name].count())
    clashing = {name: f"{name}_of_prompt" for name in prompts.columns if name in images.columns}
    cells = images.join(prompts.rename(clashing), how="cross")
    channels = [
        cells.with_columns(
            pl.lit(channel).alias("channel"),
            pl.Series("score", np.asarray(matrix.channel(channel), np.float64).ravel(), nan_to_null=True),
        )
        for channel in matrix.channels
    ]
    return pl.concat(channels)
