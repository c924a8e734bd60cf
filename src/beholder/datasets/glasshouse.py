"""Glasshouse as data sets: drawn people in several designs, made by Beholder itself. Licence: MIT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from beholder.datasets.dataset import SCHEMA, Dataset, DatasetSource
from beholder.datasets.settings import GENDER_WORDS
from beholder.glasshouse.planted import objects, people
from beholder.glasshouse.portrait import RENDERER_VERSION
from beholder.glasshouse.world import design, faces, residents

FACES_NAME, DESIGN_NAME, OBJECTS_NAME = "glasshouse-faces", "glasshouse-design", "glasshouse-objects"


def _load(name: str, rows: Callable[[], Sequence[Mapping[str, object]]], *notes: str) -> Dataset:
    """Drawings, whose revision is the renderer's."""
    notes, worn = ("drawn people; no photograph of anyone", *notes), name == OBJECTS_NAME
    things = pl.DataFrame(objects(), schema=SCHEMA) if worn else None
    words = GENDER_WORDS if worn else None
    revision = f"renderer-{RENDERER_VERSION}"
    return Dataset(name, revision, "MIT", pl.DataFrame(rows()), notes, objects=things, group_words=words)


def _source(
    name: str, title: str, images: int, rows: Callable[[], Sequence[Mapping[str, object]]], *notes: str
) -> DatasetSource:
    """A data set that is drawn on demand, so no folder is read."""
    return DatasetSource(
        name=name,
        title=title,
        licence="MIT",
        origin="Beholder itself",
        layout="nothing: it is drawn on demand",
        images=images,
        load=lambda folder=None: _load(name, rows, *notes),
        embedded=True,
        labels="what was drawn",
        intended="checking that an audit finds what is known to be there, without a photograph of anyone",
    )


SOURCE = _source("glasshouse", "Glasshouse: the embedded world of drawn people", 420, residents)
FACES = _source(
    FACES_NAME, "Glasshouse faces: 120 drawn people crossed over presentation, skin tone and age", 120, faces
)
DESIGN = _source(
    DESIGN_NAME, "Glasshouse design: a full factorial of six attributes over ten drawn identities", 3240, design
)
OBJECTS = _source(
    OBJECTS_NAME,
    "Glasshouse objects: 128 drawn people with things worn, in view more often in one group",
    128,
    people,
    "how often a thing is hardly in view depends on presentation, as planted (docs/glasshouse.md)",
)
