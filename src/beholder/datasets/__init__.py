"""The data sets Beholder knows by name, and the ways to any other: `folder:PATH`, `hf:NAME`, `wds:URI`, a table.

Each is loaded when it is first used, so that a worker process opens images without all data sets.
"""

import csv
import os
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beholder.core.catalog import Catalog
from beholder.core.errors import MissingData

if TYPE_CHECKING:
    from beholder.datasets.dataset import Dataset, DatasetSource

FACTS = {row["name"]: row for row in csv.DictReader((files(__name__) / "sources.csv").read_text("utf-8").splitlines())}
DATASETS: "Catalog[DatasetSource]" = Catalog(
    "data set", lazy={name: f"{__name__}.{row['read_by']}" for name, row in FACTS.items()}, installed=__name__
)
READ_BY = {"folder": "folder:load", "hf": "shards:load_hf", "wds": "shards:load_wds", "table": "table:load"}
OWN_DATA: "Catalog[Callable[[str, Mapping[str, str] | None], Dataset]]" = Catalog(  # by how their names begin
    "way to data", lazy={f"{kind}:": f"{__name__}.{load}" for kind, load in READ_BY.items()}
)


def data_root(option: Path | None = None) -> Path | None:
    """The folder that holds the data sets: the option, else BEHOLDER_DATA, else unknown."""
    value = option or os.environ.get("BEHOLDER_DATA")
    return Path(value) if value else None


def load_dataset(name: Any, root: str | Path | None = None, settings: Mapping[str, str] | None = None) -> "Dataset":
    """A data set by name, read as `settings` say; or one's own: `folder:PATH`, `hf:NAME`, `wds:URI`, a DataFrame.

    >>> load_dataset("glasshouse").attributes[:2]
    ['branch', 'name']
    """
    name = dataset_name(name, settings)
    scheme, place = own_data(name)
    return OWN_DATA[scheme](place, settings) if scheme else DATASETS[name].open(root, settings)


def dataset_name(given: Any, settings: Mapping[str, str] | None = None) -> str:
    """The name of what was given: a name, a path, or a table in memory."""
    if isinstance(given, str | Path):
        return str(given)
    from beholder.datasets.table import held  # here, so that a worker process starts without it

    return held(given, (settings or {}).get("image", ""))


def require_asked(source: str, named: object, option: str = "--data") -> None:
    """Raise if a place that a run folder names lies on the network, unless the user `named` it as well."""
    place = own_data(source)[1]
    away = "://" in place or (source.startswith("hf:") and not os.path.exists(place))
    if away and str(Path(str(named))) not in {str(Path(source)), str(Path(place))}:
        raise MissingData(
            f"This run folder names {source}, which is not on this machine. Nothing was asked of it.\n"
            f"If you trust that place, name it yourself: {option} {place}"
        )


def own_data(name: str) -> tuple[str, str]:
    """How the name of a user's own data set begins, and where it lies; nothing of the first for a known name."""
    scheme = next((each for each in OWN_DATA if name.startswith(each)), "")
    if not scheme and name not in DATASETS and Path(name).expanduser().exists():
        return "folder:", os.path.expanduser(name)  # a plain path
    place = name.removeprefix(scheme).removeprefix("file://")
    return scheme, os.path.expanduser(place) if scheme else name
