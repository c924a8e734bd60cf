"""ModelSpec: every setting that can move a score, as one value with a digest; LoadOptions; this machine.

Two runs with equal digests would give equal scores; so the store keys on it, and on nothing else about a model.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from beholder.core.digests import digest
from beholder.core.errors import UnknownName, UsageError
from beholder.core.options import option
from beholder.core.types import Fields

AS_SERVED = "as served"  # the precision of a model behind an address
Settings = Fields  # JSON values; each adapter nests them differently
# All are Any: torch and transformers are optional and skipped by mypy, so their own types cannot be used here.
Tensor = Any
Module = Any
Config = Any
Processor = Any  # of pictures, of texts or of both: a tokenizer too
Output = Any  # what a module returns: a tensor, several, or an output object of transformers
Inputs = dict[str, Tensor]


@dataclass(frozen=True)
class ModelSpec:
    """A model as it was audited. `name` is what people call it and moves no score; all the rest does."""

    name: str
    adapter: str
    weights: str  # hub id, or `folder` for files at hand: then `revision` is the digest of their contents
    revision: str
    precision: str = "float32"
    settings: Settings = field(default_factory=dict)
    """JSON values: image size, crop, resampling, mean, std, logit scale and bias, text length, padding …"""

    @property
    def digest(self) -> str:
        """Stands for everything but the name."""
        return digest([self.adapter, self.weights, self.revision, self.precision, dict(self.settings)])

    def having(self, **settings: object) -> Self:
        """The same model with these settings too."""
        return replace(self, settings={**self.settings, **settings})

    def as_dict(self) -> dict[str, object]:
        """For manifests and the report."""
        return {**vars(self), "settings": dict(self.settings), "digest": self.digest}


PRECISIONS = {"float32": "float32", "bfloat16": "bfloat16", "float16": "float16"}
PRECISIONS |= {"auto": "float32", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
# auto is float32 on every device: correct scores before speed. Half precision is opt-in and recorded in the spec.
# Only generative models are too large for that: they run in bfloat16 on a GPU and may be quantised.
QUANTISED = ("int8", "int4")
DECODES = ("exact", "gpu", "both")


@dataclass(frozen=True)
class LoadOptions:
    """How to load a model."""

    device: str = option("auto")
    """`auto` is CUDA if available, else the CPU; several devices each have a copy of the model, and `shard` spreads a
    generative one over all. Not part of the spec: float32 scores agree to rounding on every device."""
    precision: str = option("auto")
    decode: str = option("exact")
    batch_size: int | None = option(None)
    revision: str | None = None
    trust_remote_code: bool = option(False)
    allow_pickle: bool = option(False)
    shared_prefix: bool = True  # whether questions may share their common beginning; scores agree to rounding

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


class Machine(NamedTuple):
    """Bytes that are free."""

    memory: int
    gpu_memory: int  # of the largest GPU; 0 without one


def this_machine() -> Machine:
    """What is free here now."""
    return Machine(_main_memory(), _gpu_memory())


def device_names(asked: str) -> list[str]:
    """The devices that a name stands for: `cuda:all` is every GPU, `cuda:0,cuda:2` are two; else one."""
    if asked != "cuda:all":
        return asked.split(",")
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        count = len([one for one in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if one.strip() not in ("", "-1")])
    else:
        count = _asked_driver("--list-gpus").count("GPU ")
    return [f"cuda:{number}" for number in range(count)] or ["cuda"]


def _main_memory() -> int:
    table = Path("/proc/meminfo")
    if table.is_file() and (match := re.search(r"MemAvailable:\s+(\d+) kB", table.read_text())):
        return int(match[1]) * 1024
    return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))


def _gpu_memory() -> int:
    """By nvidia-smi, which comes with the driver; a GPU that it does not know is as good as none."""
    answer = _asked_driver("--query-gpu=memory.free", "--format=csv,noheader,nounits")
    return max((int(line) for line in answer.split() if line.isdecimal()), default=0) * 2**20


def _asked_driver(*options: str) -> str:
    tool = shutil.which("nvidia-smi")
    try:
        return subprocess.run([tool or "", *options], capture_output=True, text=True, timeout=10, check=True).stdout
    except (subprocess.SubprocessError, OSError):
        return ""
