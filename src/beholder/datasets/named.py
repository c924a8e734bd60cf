"""The data sets Beholder knows by name, and the way to any other: `folder:PATH`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from beholder.core.catalog import Catalog
from beholder.datasets import (
    adult_faces,
    apa,
    causalface,
    coco,
    fairface,
    folder,
    glasshouse,
    gras,
    utkface,
    visual_genome,
)
from beholder.datasets.dataset import Dataset, DatasetSource
from beholder.datasets.settings import Settings

SOURCES = (
    apa.SOURCE,
    fairface.SOURCE,
    gras.SOURCE,
    coco.SOURCE,
    visual_genome.SOURCE,
    glasshouse.SOURCE,
    glasshouse.FACES,
    utkface.SOURCE,
    causalface.SOURCE,
    *adult_faces.SOURCES,
    glasshouse.DESIGN,
    glasshouse.OBJECTS,
)
DATASETS: Catalog[DatasetSource] = Catalog(
    "data set", {source.name: source for source in SOURCES}, installed="beholder.datasets"
)
FOLDER_SCHEME = "folder:"


def data_root(option: Path | None = None) -> Path | None:
    """The folder that holds the data sets: the option, else BEHOLDER_DATA, else unknown."""
    value = option or os.environ.get("BEHOLDER_DATA")
    return Path(value) if value else None


def open_dataset(name: str, root: Path | None = None, settings: Mapping[str, str] | None = None) -> Dataset:
    """A data set by name, read as `settings` say, or any folder of images by `folder:PATH`."""
    if name.startswith(FOLDER_SCHEME):
        Settings(name, {}, settings)  # refuses whatever was chosen: there is nothing to choose
        return folder.load(Path(name.removeprefix(FOLDER_SCHEME)))
    return DATASETS[name].open(root, settings)
