"""Glasshouse as data sets: drawn people in several designs, made by Beholder itself. Licence: MIT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from beholder.datasets.dataset import SCHEMA, Dataset, DatasetSource
from beholder.datasets.group_words import GENDER_WORDS
from beholder.glasshouse.design import design
from beholder.glasshouse.faces import faces
from beholder.glasshouse.objects import objects, people
from beholder.glasshouse.portrait import RENDERER_VERSION
from beholder.glasshouse.world import residents

LICENCE = "MIT"
FACES_NAME, DESIGN_NAME, OBJECTS_NAME = "glasshouse-faces", "glasshouse-design", "glasshouse-objects"


def load(folder: Path = Path()) -> Dataset:
    """The residents; drawn on demand, so no folder is read."""
    return _drawn("glasshouse", residents())


def load_faces(folder: Path = Path()) -> Dataset:
    """120 faces, crossed over presentation, skin tone and age; drawn on demand."""
    return _drawn(FACES_NAME, faces())


def load_design(folder: Path = Path()) -> Dataset:
    """3,240 faces, a full factorial of six attributes over ten identities; drawn on demand."""
    return _drawn(DESIGN_NAME, design())


def load_objects(folder: Path = Path()) -> Dataset:
    """128 people with things worn or held, some hardly in view; drawn on demand."""
    note = "how often a thing is hardly in view depends on presentation, as planted (docs/glasshouse.md)"
    things = pl.DataFrame(objects(), schema=SCHEMA)
    return _drawn(OBJECTS_NAME, people(), note, objects=things, group_words=GENDER_WORDS)


def _drawn(name: str, rows: Sequence[Mapping[str, object]], *notes: str, **others: Any) -> Dataset:
    """Drawings, whose revision is the renderer's."""
    notes = ("drawn people; no photograph of anyone", *notes)
    return Dataset(name, f"renderer-{RENDERER_VERSION}", LICENCE, pl.DataFrame(rows), notes, **others)


def _source(name: str, title: str, images: int, load: Callable[..., Dataset]) -> DatasetSource:
    return DatasetSource(
        name=name,
        title=title,
        licence=LICENCE,
        origin="Beholder itself",
        layout="nothing: it is drawn on demand",
        images=images,
        load=load,
        embedded=True,
        labels="what was drawn",
        intended="checking that an audit finds what is known to be there, without a photograph of anyone",
    )


SOURCE = _source("glasshouse", "Glasshouse: the embedded world of drawn people", 420, load)
FACES = _source(
    FACES_NAME, "Glasshouse faces: 120 drawn people crossed over presentation, skin tone and age", 120, load_faces
)
DESIGN = _source(
    DESIGN_NAME, "Glasshouse design: a full factorial of six attributes over ten drawn identities", 3240, load_design
)
OBJECTS = _source(
    OBJECTS_NAME,
    "Glasshouse objects: 128 drawn people with things worn, in view more often in one group",
    128,
    load_objects,
)
