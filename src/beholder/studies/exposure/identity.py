"""How well a model knows each person by name, as an earlier audit scored it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from beholder.core.errors import MissingData, UsageError
from beholder.core.files import Place
from beholder.core.record import read_record
from beholder.datasets.dataset import Dataset
from beholder.models.spec import ModelSpec
from beholder.scores.imported import import_scores
from beholder.scores.recorded import stored_scores
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.store import Store
from beholder.scores.task import Task
from beholder.studies.apa.study import APA
from beholder.studies.public_figures.identity import IDENTITY, known_by_name


def identity_scores(folder: Path, dataset: Dataset, store: Place) -> dict[str, pl.DataFrame]:
    """For every model of an APA audit: `branch, name, gain, known`, by person.

    Read from the store, or again from the files of imported scores; the model itself is not needed.
    """
    record = read_record(folder)
    if APA.name not in record.benchmarks or dataset.name not in [entry["name"] for entry in record.datasets]:
        raise UsageError(
            f"{folder} is no audit of APA's photographs: it holds {', '.join(record.benchmarks) or 'nothing'} on "
            f"{', '.join(entry['name'] for entry in record.datasets) or 'nothing'}.\n"
            "Make one with: beholder audit MODEL --benchmark apa --data DIR"
        )
    limit = record.settings.get("limit")
    limited = dataset if limit is None else dataset.selected(APA.select(dataset, limit, record.settings.get("person")))
    tasks = [task for task in APA.tasks(limited) if task.kind == IDENTITY]
    scores: dict[str, pl.DataFrame] = {}
    for entry in record.models:
        if people := list(_people(_matrices(entry, tasks, store))):
            scores[str(entry["name"])] = pl.concat(people)
    if not scores:
        raise MissingData(
            f"The store at {store} has no identity scores of {folder}.\n"
            "Name the store of that audit with --store, or run the audit again."
        )
    return scores


def _matrices(entry: dict[str, Any], tasks: list[Task], store: Place) -> list[ScoreMatrix]:
    if "digest" not in entry:
        return import_scores([Path(file) for file in entry["files"]], tasks).matrices
    spec = ModelSpec(**{key: value for key, value in entry.items() if key not in ("digest", "notes")})
    return stored_scores(tasks, spec, Store(store))


def _people(matrices: list[ScoreMatrix]) -> Iterator[pl.DataFrame]:
    for matrix in matrices:
        people = known_by_name(matrix)
        if people.height > 1:
            yield people.select(pl.lit(matrix.part).alias("branch"), "name", "gain", "known")
