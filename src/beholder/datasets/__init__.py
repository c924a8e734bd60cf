"""The data sets Beholder knows by name, and the way to any other: `folder:PATH`."""

from __future__ import annotations

import os
from pathlib import Path

from beholder.catalog import Catalog
from beholder.datasets import apa, fairface, folder, glasshouse, gras
from beholder.datasets.dataset import Dataset, DatasetSource

SOURCES = (apa.SOURCE, fairface.SOURCE, gras.SOURCE, glasshouse.SOURCE, glasshouse.FACES)
DATASETS: Catalog[DatasetSource] = Catalog("data set", {source.name: source for source in SOURCES})
FOLDER_SCHEME = "folder:"


def data_root(option: Path | None = None) -> Path | None:
    """The folder that holds the data sets: the option, else BEHOLDER_DATA, else unknown."""
    value = option or os.environ.get("BEHOLDER_DATA")
    return Path(value) if value else None


def open_dataset(name: str, root: Path | None = None) -> Dataset:
    """A data set by name, or any folder of images by `folder:PATH`."""
    if name.startswith(FOLDER_SCHEME):
        return folder.load(Path(name.removeprefix(FOLDER_SCHEME)))
    return DATASETS[name].open(root)
