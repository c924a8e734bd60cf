"""Which adapter reads a transformers folder: decided by its config.json, before any weights are read.

Every adapter offers `from_folder(folder, name, options, *, origin=None) -> Scorer`. A new family is a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from beholder.models.folder import read_config
from beholder.models.scorer import Scorer

ADAPTERS = {
    "contrastive": "beholder.models.contrastive:TransformersContrastive.from_folder",
}
"""Where each family's adapter lives; imported only when it is asked for."""


def family_of(config: Mapping[str, Any]) -> str:
    """The family of a checkpoint, from its model type and architecture; two towers unless they say otherwise."""
    return "contrastive"


def adapter_of(folder: Path) -> Callable[..., Scorer]:
    """The `from_folder` of the adapter that reads this folder."""
    module, _, path = ADAPTERS[family_of(read_config(folder))].partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found  # type: ignore[no-any-return]
