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
