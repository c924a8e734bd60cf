"""Record: how the results of a run were computed. Everything in it is JSON."""

import json
import platform
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, get_type_hints

from beholder.core.errors import DISTRIBUTION, DataError, MissingData, masked
from beholder.core.read import read_json, require_form
from beholder.core.types import Entry

LIBRARIES = ("numpy", "scipy", "polars", "pillow", "torch", "transformers", "onnxruntime")
SCHEMA = 3  # the form of a run folder: 3 has a verdict for every comparison


# The fields of a record that are known more closely than their types say; those after `?` may be missing.
PERSONS: Entry = {
    **{"people": int, "described": str, "?column": str | None},
    **{"?pictures": int, "?conflicts": dict[str, int]},
}
MODEL: Entry = {
    "name": str,
    **dict.fromkeys(("?adapter", "?weights", "?revision", "?precision", "?digest"), str),
    **{"?settings": Entry, "?notes": list[str] | None, "?files": list[str], "?moved_by_rounding": float},
}
DATASET: Entry = {
    "name": str,
    **{"?revision": str | None, "?licence": str | None, "?origin": str, "?images": int | None, "?of": int | None},
    **{"?groups": dict[str, dict[str, int]], "?persons": PERSONS, "?notes": list[str] | None},
    **{"?photographs": str, "?photographs_on_page": bool},
    "?selection": {"?over": list[str], "?uneven": list[str], "?each": str | None},
}
FORMS: Entry = {
    "settings": {"?limit": int | None, "?compat": bool | None},
    "models": [MODEL],
    "datasets": [DATASET],
    "bad_images": [{"image": str, "reason": str}],
    "not_compared": [{"study": str, "dataset": str, "label": str, "reason": str, "unclear": bool}],
}


@dataclass
class Record:
    """Models, data, settings, and what was left out."""

    beholder: str = field(default_factory=lambda: version())
    schema: int = SCHEMA
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    command: list[str] = field(default_factory=list)
    seconds: float = 0.0  # how long it took, its continuations included
    digest: str = ""  # which run it is: the same models, data and settings give the same digest
    finished: bool = True  # false until the page is written: the same command then continues it
    settings: Entry = field(default_factory=dict)
    studies: list[str] = field(default_factory=list)
    declared: dict[str, Entry] = field(default_factory=dict)  # the user's own studies (`Study.declaration`)
    models: list[Entry] = field(default_factory=list)
    datasets: list[Entry] = field(default_factory=list)
    bad_images: list[dict[str, str]] = field(default_factory=list)  # images that could not be read: `image`, `reason`
    left_out: list[str] = field(default_factory=list)
    not_compared: list[Entry] = field(default_factory=list)  # labels that were asked for, in the form above
    notes: list[str] = field(default_factory=list)
    machine: dict[str, str] = field(default_factory=lambda: machine())

    def __setattr__(self, name: str, value: Any) -> None:
        """A command may name a URI: it is kept without its credentials."""
        object.__setattr__(self, name, [masked(str(word)) for word in value] if name == "command" else value)

    def add_model(self, model: Entry) -> None:
        """A model as it was asked, once for every way of asking; what it notes last is kept."""
        self.models = [known for known in self.models if known.get("digest") != model["digest"]] + [model]

    def add_rounding(self, model: str, moved: float, *, nudge: float, precision: str = "float32") -> None:
        """A model whose scores rounding moves far: a fact about it, and a note."""
        kind = "numerically unstable" if precision == "float32" else f"rounded to {precision}"
        note = (
            f"Scores are {kind}: changing a picture's numbers by {nudge:.2g} of themselves moves a score "
            f"by up to {moved:.2g}. The table of small changes shows how far that moves each finding."
        )
        for entry in self.models:
            if entry.get("name") == model:
                entry["moved_by_rounding"] = moved
                entry["notes"] = list(dict.fromkeys([*(entry.get("notes") or []), note]))

    def add_dataset(self, entry: Entry) -> None:
        """A data set, once."""
        if entry["name"] not in [known["name"] for known in self.datasets]:
            self.datasets.append({**entry, "origin": masked(str(entry["origin"]))} if "origin" in entry else entry)

    def add_not_compared(self, study: str, dataset: str, label: str, reason: str, *, unclear: bool = False) -> None:
        """A label that was asked for and not compared, once; `unclear` where its values look alike."""
        entry = {"study": study, "dataset": dataset, "label": label, "reason": reason, "unclear": unclear}
        self.not_compared += [entry] if entry not in self.not_compared else []

    def add_bad_images(self, reasons: dict[str, str]) -> None:
        """Images that could not be read, each once."""
        known = {entry["image"] for entry in self.bad_images}
        named = {masked(uri): why for uri, why in reasons.items()}
        self.bad_images += [{"image": uri, "reason": why} for uri, why in named.items() if uri not in known]

    def add_copies(self, dataset: str, copies: int) -> None:
        """How many images of a data set have the bytes of another, once."""
        note = f"{dataset}: images that are copies of another: {copies:,} (they make intervals too narrow)"
        self.notes += [note] if copies and note not in self.notes else []

    def as_json(self) -> bytes:
        """The file `run.json`; it has no credentials."""
        return masked(json.dumps(asdict(self), indent=1, ensure_ascii=False)).encode("utf-8", "replace")


def read_record(folder: Path) -> Record:
    """The record of a run folder."""
    path = folder / "run.json"
    if not path.is_file():
        raise MissingData(
            f"{folder} is not a run folder: it has no run.json. Make one with: beholder audit --out {folder}"
        )
    return checked_record(read_json(path), path)


def checked_record(entry: Any, path: Path) -> Record:
    """The record that a file holds; one of another form, or of another Beholder, is refused."""
    require_form(entry, Entry, path)
    schema = entry.get("schema")
    if schema != SCHEMA:
        newer = isinstance(schema, int) and schema > SCHEMA
        who, todo = ("a newer", "Update Beholder, or make") if newer else ("an earlier", "Make")
        written = f"{path} was written by {who} Beholder (schema {str(schema)[:20]}; this one reads {SCHEMA})"
        raise DataError(f"{written}. {todo} the run again: what was scored is kept.")
    known = {**get_type_hints(Record), **FORMS}
    for name, form in known.items():
        if name in entry:
            require_form(entry[name], form, path, name)
    return Record(**{name: value for name, value in entry.items() if name in known})


def version() -> str:
    """The version of Beholder; a plain copy of the files, which is not installed, has none."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"


def machine() -> dict[str, str]:
    """What the numbers were computed with."""
    facts = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for library in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            facts[library] = metadata.version(library)
    return facts
