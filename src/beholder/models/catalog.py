"""The models that Beholder knows. Nothing here loads a model or imports torch.

`catalog.csv` has the models of the studies' tables, by the names printed there, and others of today: what could not be
verified is empty there and None here; revision `main` means that no commit is known. `architectures.csv` has the
architectures of transformers. `families.csv` has the families: how a model is recognised and which function opens it.
A model is named by a scheme (`onnx:DIR`), or it is a transformers folder whose config.json names its architecture. A
new family is one folder beside this file and one row there.
"""

import csv
import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

from beholder.core.catalog import Catalog
from beholder.core.errors import ModelError, UnknownName
from beholder.core.types import Entry
from beholder.models.checkpoint.files import ConfigFile, Origin, read_config
from beholder.models.scorer import Scorer
from beholder.models.spec import LoadOptions, Machine

BYTES = {"float32": 4, "bfloat16": 2}
WORKING_SPACE = 1.2  # weights, and a fifth more for a small batch; a rule of thumb, not a measurement


@dataclass(frozen=True)
class ModelEntry:
    """One model as the studies print it."""

    name: str
    aliases: tuple[str, ...]
    studies: dict[str, str]  # study → its tables that print this model
    family: str
    adapter: str  # the name of a family in `FAMILIES`
    load: str  # what `load_model` is given; empty where the user has to bring something, and `note` says what
    source: str  # where its weights are: a hub name, or an address
    revision: str
    parameters: int | None
    training_pairs: int | None  # image–text pairs that it was trained on, as its authors count them
    released: str | None  # when it was published: a day, a month or a year, as far as `reference` says
    licence: str | None
    reference: str  # where release date, training pairs and pinned commit are stated
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


def _rows(file: str) -> Iterator[Entry]:
    return csv.DictReader((files("beholder.models") / file).read_text(encoding="utf-8").splitlines())


@cache
def catalog() -> tuple[ModelEntry, ...]:
    """Every entry, in the order of the tables."""
    return tuple(_entry(row) for row in _rows("catalog.csv"))


def _entry(row: Entry) -> ModelEntry:
    aliases, studies = (
        tuple(part.strip() for part in row[name].split(";") if part.strip()) for name in ("aliases", "studies")
    )
    tables = {study: named for study, _, named in (part.partition(" ") for part in studies)}
    row |= {name: int(row[name]) if row[name] else None for name in ("parameters", "training_pairs")}
    row |= {name: row[name] or None for name in ("released", "licence")}
    return ModelEntry(**{**row, "aliases": aliases, "studies": tables})


def find_model(name: str) -> ModelEntry:
    """The model that a printed name or an alias stands for; capitals, `/`, `_` and blanks do not matter."""
    entry = lookup(name)
    if entry is None:
        raise UnknownName("model of the studies", name, nearest(name) or [each.name for each in catalog()])
    return entry


def lookup(name: str) -> ModelEntry | None:
    """The model of that name, or None."""
    return _by_key().get(_key(name), (None, ""))[0]


def nearest(name: str, count: int = 3) -> list[str]:
    """Names that are like it, the likest first."""
    close = difflib.get_close_matches(_key(name), _by_key(), n=count, cutoff=0.6)
    return [_by_key()[key][1] for key in close]


@cache
def _by_key() -> dict[str, tuple[ModelEntry, str]]:
    return {_key(name): (entry, name) for entry in catalog() for name in entry.names}


def _key(name: str) -> str:
    return re.sub(r"[\s/_]+", "-", name.strip().casefold())


def selected(*, family: str | None = None, study: str | None = None) -> list[ModelEntry]:
    """The entries of a family, of a study."""
    studies = list(dict.fromkeys(name for entry in catalog() for name in entry.studies))
    for kind, name, known in (("family", family, KINDS), ("study", study, studies)):
        if name is not None and name not in known:
            raise UnknownName(kind, name, known)
    return [
        entry
        for entry in catalog()
        if (family is None or entry.family == family) and (study is None or study in entry.studies)
    ]


def count_of(text: str) -> float:
    """A number with a K, M or B behind it: 1.5B."""
    matched = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([KMB]?)\s*", text, re.IGNORECASE)
    if matched is None:
        raise UnknownName("size", text, ["500M", "1B", "7.5B"])
    return float(matched[1]) * {"": 1, "K": 1e3, "M": 1e6, "B": 1e9}[matched[2].upper()]


def short(count: float | None) -> str:
    """A count as people write it: 8.29B."""
    if count is None:
        return "unknown"
    unit, letter = next(((u, s) for u, s in ((1e9, "B"), (1e6, "M"), (1e3, "K")) if count >= u), (1.0, ""))
    return f"{float(f'{count / unit:.3g}'):g}{letter}"


# The architectures of transformers

KIND_OF_TASK = {
    "zero-shot-image-classification": "contrastive",
    "two towers beside that pipeline": "contrastive",
    "image-text matching": "matching",
    "image-text-to-text": "generative",
    "zero-shot-object-detection": "detection",
    "segmentation by text": "segmentation",
}  # the kind of model that each task of the sweep is about


class Architecture(NamedTuple):
    """One architecture and what came of it."""

    task: str
    model_type: str
    architecture: str
    state: str  # `exact`: as its own forward pass, to 0.0001; `refused`; `not built`: nothing is known
    shared: str  # what is computed once for many prompts or pictures; empty where nothing is
    extra: str  # what it needs beside `beholder-audit[torch]`
    why: str
    difference: str = ""  # the largest difference to its own forward pass, where the sweep kept it

    @property
    def kind(self) -> str:
        """The kind of model."""
        return KIND_OF_TASK[self.task]


@cache
def architectures() -> tuple[Architecture, ...]:
    """Every architecture, by task and model type, as `python tools/family_sweep.py` met it, built tiny."""
    return tuple(Architecture(**row) for row in _rows("architectures.csv"))


Opener = Callable[..., Scorer]


@dataclass(frozen=True)
class Family:
    """One family of models, opened by one adapter."""

    name: str  # the scheme too, if models are named by one
    kind: str  # contrastive, matching, generative, detection, segmentation or baseline
    what: str
    opens: str | Opener  # the function that opens a model, or where it is: `module:function`
    # With a scheme it is called as `open(rest_of_name, options)`, else as `open(folder, name, options, origin=…)`.
    form: str = ""  # how a model with a scheme is named; empty for families read from a transformers folder
    config_names: tuple[str, ...] = ()  # endings of `architectures` or `model_type` in config.json

    @property
    def open(self) -> Opener:
        """The function that opens a model of this family; its libraries are imported now."""
        function: Opener = self.opens if callable(self.opens) else resolve_name(self.opens)
        return function


_families = (Family(**{**row, "config_names": tuple(row["config_names"].split())}) for row in _rows("families.csv"))
FAMILIES = Catalog("family of models", {each.name: each for each in _families}, installed="beholder.models")
# A plug-in adds its own: `FAMILIES.add("colour", Family("colour", …))`
KINDS = ("matching", "generative", "detection", "segmentation", "contrastive")  # that transformers folders hold
_UNREAD = {
    "vilt bridgetower": "It reads picture and text together, in a way that Beholder has no adapter for.",
    "colpali colqwen2 colmodernvbert": "It compares every word with every patch to find documents; Beholder has no "
    "adapter for that.",
    "xclip videoprism": "It reads videos, not pictures.",
    "sam3 sam3_lite_text": "Beholder has no adapter for it: run it elsewhere and import its masks (docs/detectors.md).",
}  # model types that stand beside those that Beholder reads, and why it does not read them
UNREAD = {name: reason for names, reason in _UNREAD.items() for name in names.split()}
FOLDER_FORMS = {
    "OWNER/NAME[@REVISION]": f"a model from the hub ({', '.join(KINDS)})",
    "DIR": "the same from a local transformers folder",
}


def family_of(config: ConfigFile) -> Family:
    """The family of a checkpoint, from its architectures and model type; contrastive unless another matches."""
    architectures = config.get("architectures")
    names = [*map(str, architectures if isinstance(architectures, list) else ()), str(config.get("model_type"))]
    for family in FAMILIES.values():
        if any(name.endswith(family.config_names) for name in names):
            return family
    return FAMILIES["contrastive"]


def open_folder(folder: Path, name: str, options: LoadOptions, **origin: Origin | None) -> Scorer:
    """The model in a transformers folder; its config.json decides the family before any weights are read."""
    config = read_config(folder)
    if reason := UNREAD.get(str(config.get("model_type"))):
        raise ModelError(f"{folder} is a model of type '{config['model_type']}'. {reason}")
    return family_of(config).open(folder, name, options, **origin)


def name_forms() -> list[str]:
    """Every form that the name of a model can take."""
    schemes = [form for family in FAMILIES.values() if family.form for form in family.form.split(", ")]
    return [*schemes, *FOLDER_FORMS]
