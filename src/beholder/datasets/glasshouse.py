"""Glasshouse as a data set: drawn residents in six branches, made by Beholder itself. Licence: MIT."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from beholder.datasets.dataset import Dataset, DatasetSource

IMAGES = 420


def load(folder: Path = Path()) -> Dataset:
    """The residents; drawn on demand, so no folder is read."""
    from beholder.glasshouse.portrait import RENDERER_VERSION
    from beholder.glasshouse.world import residents

    table = pl.DataFrame(residents())
    return Dataset(
        "glasshouse", f"renderer-{RENDERER_VERSION}", "MIT", table, ("drawn people; no photograph of anyone",)
    )


SOURCE = DatasetSource(
    name="glasshouse",
    title="Glasshouse: the embedded world of drawn people",
    licence="MIT",
    origin="Beholder itself",
    layout="nothing: it is drawn on demand",
    images=IMAGES,
    load=load,
    embedded=True,
)


def load_faces(folder: Path = Path()) -> Dataset:
    """120 faces, crossed over presentation, skin tone and age; drawn on demand."""
    from beholder.glasshouse.faces import faces
    from beholder.glasshouse.portrait import RENDERER_VERSION

    notes = ("drawn people; no photograph of anyone",)
    return Dataset(FACES_NAME, f"renderer-{RENDERER_VERSION}", "MIT", pl.DataFrame(faces()), notes)


FACES_NAME = "glasshouse-faces"
FACES = DatasetSource(
    name=FACES_NAME,
    title="Glasshouse faces: 120 drawn people crossed over presentation, skin tone and age",
    licence="MIT",
    origin="Beholder itself",
    layout="nothing: it is drawn on demand",
    images=120,
    load=load_faces,
    embedded=True,
)


def load_design(folder: Path = Path()) -> Dataset:
    """3,240 faces, a full factorial of six attributes over ten identities; drawn on demand."""
    from beholder.glasshouse.design import design
    from beholder.glasshouse.portrait import RENDERER_VERSION

    notes = ("drawn people; no photograph of anyone",)
    return Dataset(DESIGN_NAME, f"renderer-{RENDERER_VERSION}", "MIT", pl.DataFrame(design()), notes)


DESIGN_NAME = "glasshouse-design"
DESIGN = DatasetSource(
    name=DESIGN_NAME,
    title="Glasshouse design: a full factorial of six attributes over ten drawn identities",
    licence="MIT",
    origin="Beholder itself",
    layout="nothing: it is drawn on demand",
    images=3240,
    load=load_design,
    embedded=True,
)


def load_objects(folder: Path = Path()) -> Dataset:
    """128 people with things worn or held, some hardly in view; drawn on demand."""
    from beholder.datasets.group_words import GENDER_WORDS
    from beholder.datasets.objects import SCHEMA
    from beholder.glasshouse.objects import objects, people
    from beholder.glasshouse.portrait import RENDERER_VERSION

    notes = (
        "drawn people; no photograph of anyone",
        "how often a thing is hardly in view depends on presentation, as planted (docs/glasshouse.md)",
    )
    return Dataset(
        OBJECTS_NAME, f"renderer-{RENDERER_VERSION}", "MIT", pl.DataFrame(people()), notes,
        objects=pl.DataFrame(objects(), schema=SCHEMA), group_words=GENDER_WORDS,
    )  # fmt: skip


OBJECTS_NAME = "glasshouse-objects"
OBJECTS = DatasetSource(
    name=OBJECTS_NAME,
    title="Glasshouse objects: 128 drawn people with things worn, in view more often in one group",
    licence="MIT",
    origin="Beholder itself",
    layout="nothing: it is drawn on demand",
    images=128,
    load=load_objects,
    embedded=True,
)
