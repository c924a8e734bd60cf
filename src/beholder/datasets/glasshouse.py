"""Glasshouse as data sets: drawn people in several designs, made by Beholder itself. Licence: MIT."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from beholder.datasets.dataset import SCHEMA, Dataset, DatasetSource, published
from beholder.datasets.settings import GENDER_WORDS
from beholder.glasshouse.planted import objects, people
from beholder.glasshouse.portrait import RENDERER_VERSION
from beholder.glasshouse.world import design, faces, pairs, residents

FACES_NAME, DESIGN_NAME, OBJECTS_NAME = "glasshouse-faces", "glasshouse-design", "glasshouse-objects"
PAIRS_NAME = "glasshouse-pairs"


def _source(name: str, rows: Callable[[], Sequence[Mapping[str, object]]], *more: str) -> DatasetSource:
    """A data set that is drawn on demand, so no folder is read; its revision is the renderer's."""

    def load(folder: Path = Path()) -> Dataset:
        notes, worn = ("drawn people; no photograph of anyone", *more), name == OBJECTS_NAME
        things = pl.DataFrame(objects(), schema=SCHEMA) if worn else None
        words, revision = GENDER_WORDS if worn else None, f"renderer-{RENDERER_VERSION}"
        return Dataset(name, revision, "MIT", pl.DataFrame(rows()), notes, objects=things, group_words=words)

    return published(name, load, embedded=True)


SOURCE = _source("glasshouse", residents)
FACES = _source(FACES_NAME, faces)
DESIGN = _source(DESIGN_NAME, design)
PAIRS = _source(PAIRS_NAME, pairs)
NOTE = "how often a thing is hardly in view depends on presentation, as planted (docs/glasshouse.md)"
OBJECTS = _source(OBJECTS_NAME, people, NOTE)
