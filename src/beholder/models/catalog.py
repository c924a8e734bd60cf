"""The models of the studies' tables, by the names printed there, and others of today: what, where, how to run them.

The facts are in `catalog.csv`, one row per model; what could not be verified is empty there and None here. Revision
`main` means that no commit is known. Nothing here loads a model or imports torch.
"""

from __future__ import annotations

import csv
import difflib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from beholder.core.errors import ModelError, UnknownName
from beholder.models.families import KINDS
from beholder.models.spec import Machine

BYTES = {"float32": 4, "bfloat16": 2}
WORKING_SPACE = 1.2
"""Weights, and a fifth more for a small batch; a rule of thumb, not a measurement."""


@dataclass(frozen=True)
class ModelEntry:
    """One model as the studies print it."""

    name: str
    aliases: tuple[str, ...]
    studies: dict[str, str]
    """Study → its tables that print this model."""
    family: str
    adapter: str
    """The name of a family in `families.FAMILIES`."""
    load: str
    """What `load_model` is told; empty where the user has to bring something, and `note` says what."""
    source: str
    """Where its weights are: a hub name, or an address."""
    revision: str
    parameters: int | None
    training_pairs: int | None
    """Image–text pairs that it was trained on, as its authors count them."""
    released: str | None
    """When it was published: a day, a month or a year, as far as `reference` says."""
    licence: str | None
    reference: str
    """Where release date, training pairs and pinned commit are stated."""
    note: str

    @property
    def names(self) -> tuple[str, ...]:
        """The printed name and the others."""
        return (self.name, *self.aliases)

    @property
    def unpinned(self) -> str | None:
        """Why no commit is pinned; None if one is."""
        if self.revision == "main":
            return "no commit of it could be verified; the run records the one that was fetched"
        return None if self.revision else "it is not on the hub; the run records what its files contain"

    def memory(self, precision: str) -> int | None:
        """Bytes that it needs at a precision, about."""
        return int(self.parameters * BYTES[precision] * WORKING_SPACE) if self.parameters else None

    def fits(self, machine: Machine) -> str:
        """`gpu`, `cpu` or `no`: where it runs here, each at the adapter's own precision; `unknown` without a size."""
        on_gpu = self.memory("bfloat16" if self.family == "generative" else "float32")
        on_cpu = self.memory("float32")
        if on_gpu is None or on_cpu is None:
            return "unknown"
        if on_gpu <= machine.gpu_memory:
            return "gpu"
        return "cpu" if on_cpu <= machine.memory else "no"


@cache
def catalog() -> tuple[ModelEntry, ...]:
    """Every entry, in the order of the tables."""
    text = (files("beholder.models") / "catalog.csv").read_text(encoding="utf-8")
    return tuple(_entry(row) for row in csv.DictReader(text.splitlines()))


def find_model(name: str) -> ModelEntry:
    """The model that a printed name or an alias stands for; capitals, `/`, `_` and blanks do not matter.

    >>> find_model("ViT-B/32 w/ L2B").load
    'openclip:ViT-B-32/laion2b_s34b_b79k'
    """
    entry = lookup(name)
    if entry is None:
        raise UnknownName("model of the studies", name, nearest(name) or [each.name for each in catalog()])
    return entry


def lookup(name: str) -> ModelEntry | None:
    """The model of that name, or None."""
    return _by_key().get(_key(name))


def nearest(name: str, count: int = 3) -> list[str]:
    """Names that are like it, the likest first."""
    known = {_key(each): each for entry in catalog() for each in entry.names}
    return [known[key] for key in difflib.get_close_matches(_key(name), known, n=count, cutoff=0.6)]


def loadable(entry: ModelEntry) -> str:
    """What `load_model` is told for it, or an error that says what is missing."""
    if not entry.load:
        raise ModelError(f"{entry.name} cannot be loaded by its name alone.\n{entry.note}\nSource: {entry.source}")
    return entry.load


def selected(
    *, family: str | None = None, study: str | None = None, max_parameters: float | None = None
) -> list[ModelEntry]:
    """The entries of a family, of a study, of at most so many parameters; unknown sizes pass no limit."""
    studies = list(dict.fromkeys(name for entry in catalog() for name in entry.studies))
    for kind, name, known in (("family", family, KINDS), ("study", study, studies)):
        if name is not None and name not in known:
            raise UnknownName(kind, name, known)
    return [
        entry
        for entry in catalog()
        if (family is None or entry.family == family)
        and (study is None or study in entry.studies)
        and (max_parameters is None or (entry.parameters is not None and entry.parameters <= max_parameters))
    ]


def count_of(text: str) -> float:
    """A number with a K, M or B behind it.

    >>> count_of("1.5B")
    1500000000.0
    """
    matched = re.fullmatch(r"\s*([0-9.]+)\s*([KMB]?)\s*", text, re.IGNORECASE)
    try:
        number = float(matched[1]) if matched else None
    except ValueError:
        number = None
    if matched is None or number is None:
        raise UnknownName("size", text, ["500M", "1B", "7.5B"])
    return number * {"": 1, "K": 1e3, "M": 1e6, "B": 1e9}[matched[2].upper()]


def short(count: float | None) -> str:
    """A count as people write it.

    >>> short(8_292_166_656)
    '8.29B'
    """
    if count is None:
        return "unknown"
    unit, letter = next(((u, s) for u, s in ((1e9, "B"), (1e6, "M"), (1e3, "K")) if count >= u), (1.0, ""))
    return f"{float(f'{count / unit:.3g}'):g}{letter}"


@cache
def _by_key() -> dict[str, ModelEntry]:
    return {_key(name): entry for entry in catalog() for name in entry.names}


def _key(name: str) -> str:
    return re.sub(r"[\s/_]+", "-", name.strip().casefold())


def _entry(row: dict[str, str]) -> ModelEntry:
    studies = (part.partition(" ") for part in _parts(row["studies"]))
    return ModelEntry(
        row["name"],
        _parts(row["aliases"]),
        {study: tables for study, _, tables in studies},
        row["family"],
        row["adapter"],
        row["load"],
        row["source"],
        row["revision"],
        int(row["parameters"]) if row["parameters"] else None,
        int(row["training_pairs"]) if row["training_pairs"] else None,
        row["released"] or None,
        row["licence"] or None,
        row["reference"],
        row["note"],
    )


def _parts(cell: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in cell.split(";") if part.strip())


KIND_OF_TASK = {
    "zero-shot-image-classification": "contrastive",
    "two towers beside that pipeline": "contrastive",
    "image-text matching": "matching",
    "image-text-to-text": "generative",
    "zero-shot-object-detection": "detection",
    "segmentation by text": "segmentation",
}
"""The kind of model that each task of the sweep is about."""


class Architecture(NamedTuple):
    """One architecture and what came of it."""

    task: str
    model_type: str
    architecture: str
    state: str
    """`exact`: as its own forward pass, to 0.0001; `refused`; `not built`: no tiny model, so nothing is known."""
    shared: str
    """What is computed once for many prompts or pictures; empty where nothing is."""
    extra: str
    """What it needs beside `beholder[torch]`."""
    why: str
    difference: str = ""
    """The largest difference to its own forward pass, where the sweep kept it."""

    @property
    def kind(self) -> str:
        """The kind of model."""
        return KIND_OF_TASK[self.task]


@cache
def architectures() -> tuple[Architecture, ...]:
    """Every architecture, by task and model type."""
    text = (files("beholder.models") / "architectures.csv").read_text(encoding="utf-8")
    return tuple(Architecture(**row) for row in csv.DictReader(text.splitlines()))
