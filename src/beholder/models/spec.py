"""ModelSpec: every setting that can move a score, as one value with a digest.

Two runs with equal digests would give equal scores; so the store keys on it, and on nothing else about a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from beholder.core.digests import digest

Settings = Mapping[str, Any]  # JSON values; each adapter nests them differently


@dataclass(frozen=True)
class ModelSpec:
    """A model as it was audited. `name` is what people call it and moves no score; all the rest does.

    >>> ModelSpec("mine", "null", "none", "0").digest == ModelSpec("yours", "null", "none", "0").digest
    True
    """

    name: str
    adapter: str
    weights: str
    """Hub id, or `folder` for files at hand: then `revision` is the digest of their contents."""
    revision: str
    precision: str = "float32"
    settings: Settings = field(default_factory=dict)
    """JSON values: image size, crop, resampling, mean, std, logit scale and bias, text length, padding …"""

    @property
    def digest(self) -> str:
        """Stands for everything but the name."""
        return digest([self.adapter, self.weights, self.revision, self.precision, dict(self.settings)])

    def as_dict(self) -> dict[str, object]:
        """For manifests and the report."""
        return {**vars(self), "settings": dict(self.settings), "digest": self.digest}
