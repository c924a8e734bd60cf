"""The data sets Beholder knows by name, and the way to any other: `folder:PATH`, `hf:NAME`, `wds:URI`.

Names are loaded when first used (`named.py`), so that a worker process opens images without all data sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beholder.datasets.named import DATASETS, OWN_DATA, SOURCES, data_root, open_dataset, own_data

__all__ = ["DATASETS", "OWN_DATA", "SOURCES", "data_root", "open_dataset", "own_data"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'beholder.datasets' has no attribute {name!r}")
    from beholder.datasets import named  # see above

    return getattr(named, name)
