"""The data sets Beholder knows by name, and the ways to any other: `folder:PATH`, `hf:NAME` and `wds:URI`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from beholder.core.catalog import Catalog
from beholder.datasets import apa, causalface, coco, faces, folder, glasshouse, hf, visual_genome, wds
from beholder.datasets.dataset import Dataset, DatasetSource

SOURCES = (
    apa.SOURCE,
    faces.FAIRFACE,
    faces.GRAS,
    coco.SOURCE,
    visual_genome.SOURCE,
    glasshouse.SOURCE,
    glasshouse.FACES,
    faces.UTKFACE,
    causalface.SOURCE,
    *faces.ADULTS,
    glasshouse.DESIGN,
    glasshouse.OBJECTS,
)
DATASETS: Catalog[DatasetSource] = Catalog(
    "data set", {source.name: source for source in SOURCES}, installed="beholder.datasets"
)
OWN_DATA: Mapping[str, Callable[[str, Mapping[str, str] | None], Dataset]] = {
    "folder:": folder.load,
    "hf:": hf.load,
    "wds:": wds.load,
}  # users' own, by how their names begin


def data_root(option: Path | None = None) -> Path | None:
    """The folder that holds the data sets: the option, else BEHOLDER_DATA, else unknown."""
    value = option or os.environ.get("BEHOLDER_DATA")
    return Path(value) if value else None


def open_dataset(name: str, root: str | Path | None = None, settings: Mapping[str, str] | None = None) -> Dataset:
    """A data set by name, read as `settings` say; or one's own by `folder:PATH`, `hf:NAME` or `wds:URI`.

    >>> open_dataset("glasshouse").attributes[:2]
    ['branch', 'name']
    """
    scheme, place = own_data(name)
    return OWN_DATA[scheme](place, settings) if scheme else DATASETS[name].open(root, settings)


def own_data(name: str) -> tuple[str, str]:
    """How the name of a user's own data set begins, and where it lies; nothing of the first for a known name."""
    scheme = next((each for each in OWN_DATA if name.startswith(each)), "")
    place = name.removeprefix(scheme).removeprefix("file://")
    return scheme, os.path.expanduser(place) if scheme else name
