"""ModelSpec: every setting that can move a score, as one value with a digest.

Two runs with equal digests would give equal scores; so the store keys on it, and on nothing else about a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from beholder.core.digests import digest
from beholder.core.errors import UnknownName, UsageError

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


# LoadOptions

PRECISIONS = {"float32": "float32", "bfloat16": "bfloat16", "float16": "float16"}
PRECISIONS |= {"auto": "float32", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
# auto is float32 on every device: correct scores before speed. Half precision is opt-in and recorded in the spec.
# Only generative models are too large for that: they run in bfloat16 on a GPU and may be quantised.
QUANTISED = ("int8", "int4")
DECODES = ("exact", "gpu", "both")


@dataclass(frozen=True)
class LoadOptions:
    """How to load a model."""

    device: str = "auto"
    """`auto` (CUDA if available, else the CPU), `cpu`, `cuda`, `cuda:1`, `mps`; several with commas or
    `cuda:all`, each with its own copy of the model; `shard` spreads a generative model
    over all devices. The device is not part of the spec: float32 scores agree to rounding on every device."""
    precision: str = "auto"
    decode: str = "exact"
    """`exact`: the checkpoint's own preprocessing. `gpu`: by nvJPEG, whose pixels differ a little; part of the spec.
    `both`: exact, and an audit also measures what `gpu` would do to every finding."""
    batch_size: int | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False
    shared_prefix: bool = True
    """Whether questions about one picture may share their common beginning; scores agree to rounding either way."""

    def __post_init__(self) -> None:
        if self.precision not in (known := (*PRECISIONS, *QUANTISED)):
            raise UnknownName("precision", self.precision, known)
        if self.decode not in DECODES:
            raise UnknownName("way to decode", self.decode, DECODES)
        if self.batch_size is not None and self.batch_size < 1:
            raise UsageError(f"The batch size is {self.batch_size}; it must be at least 1.")

    @property
    def resolved_precision(self) -> str:
        """The precision's full name; `auto` is float32."""
        if self.precision in QUANTISED:
            raise UsageError(f"Only generative models can be quantised ({self.precision}).")
        return PRECISIONS[self.precision]
