"""The store: what was scored once is never scored again.

    STORE/digests.sqlite                                  digests of image files (`core/digests.py`)
    STORE/<spec digest>/spec.json
    STORE/<spec digest>/images/<block>.parquet            unit vectors by image content (contrastive models)
    STORE/<spec digest>/texts/<block>.parquet             unit vectors by text
    STORE/<spec digest>/scores/<prompts>/<block>.parquet  cells by image content (all other models)
    STORE/<spec digest>/complete/<sheet>.json             a manifest, written last: this sheet is complete
    STORE/<spec digest>/**/index                          where the rows of a shelf's blocks are (`shelf.py`)

A block (`shelf.py`) is written whole or not at all (a temporary file, flushed to the disk, then renamed) and never
changed: several processes may fill one store, and a kill at any moment costs only unwritten rows. Vectors of faces can
be personal data: whatever is made here is for its owner alone.

STORE may be a URI (`s3://bucket/scores`). There a block is put as one object. Digests of files behind URIs are kept in
blocks too (`STORE/digests/`), for the next machine; this machine's own copy is in the user's cache.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from beholder.core.digests import SharedDigests, digest
from beholder.core.errors import MissingData, RemoteError
from beholder.core.files import Place, cache_folder, listing, place, remove_tree, walk, write_whole
from beholder.core.progress import Progress, silent
from beholder.core.remote import RemotePath
from beholder.core.types import Fields
from beholder.datasets.dataset import ImageDigests
from beholder.models.spec import ModelSpec
from beholder.scores.shelf import INDEX, BadBlock, Shelf

LEFT = (".part", ".damaged", ".removed")  # how the names of files end that nobody needs any more
DAY = 86400.0  # seconds: a younger temporary file may still be in use
MODEL = re.compile(r"[0-9a-f]{20}")


class Store:
    """Everything scored so far, by model."""

    def __init__(self, root: str | Place) -> None:
        """`root` is a folder or a URI."""
        self.root = place(root)

    @property
    def digest_memory(self) -> Path:
        """Where file digests are remembered on this machine."""
        if isinstance(self.root, RemotePath):
            return cache_folder() / "remote" / digest(str(self.root)) / "digests.sqlite"
        return self.root / "digests.sqlite"

    def image_digests(self, *, verify: bool = False) -> ImageDigests:
        """The digests of images, as far as they are remembered."""
        shared = SharedDigests(self.root / "digests") if isinstance(self.root, RemotePath) else None
        return ImageDigests(self.digest_memory, verify=verify, shared=shared)

    def holds(self, spec: ModelSpec) -> bool:
        """Whether anything of a model is stored."""
        return (self.root / spec.digest).is_dir()

    def images(self, spec: ModelSpec) -> Shelf:
        """The image vectors of a contrastive model."""
        return self.shelf(self._describe(spec), "images")

    def texts(self, spec: ModelSpec) -> Shelf:
        """The text vectors of a contrastive model."""
        return self.shelf(self._describe(spec), "texts")

    def scores(self, spec: ModelSpec, prompts_digest: str, widths: Mapping[str, int] | None = None) -> Shelf:
        """The cells of a model that scores pairs; `widths` are the prompts of each channel, if they are known."""
        return self.shelf(self._describe(spec), "scores", prompts_digest, widths)

    def complete(self, spec: ModelSpec, sheet: str, manifest: Mapping[str, object]) -> None:
        """Say that a sheet is complete; the date of the file says when it was last used."""
        path, data = self.root / spec.digest / "complete" / f"{sheet}.json", json.dumps(manifest, indent=1).encode()
        if isinstance(path, RemotePath):  # only by writing it again does it get a new date
            with suppress(RemoteError):
                write_whole(path, data)
            return
        with suppress(FileNotFoundError, NotADirectoryError):
            if path.read_bytes() == data:
                with suppress(OSError):  # a store that is only read
                    os.utime(path)
                return
        write_whole(path, data, private=True)

    def shelf(self, model: str, name: str, prompts: str = "", widths: Mapping[str, int] | None = None) -> Shelf:
        """A shelf of the model with this digest."""
        label = {"model": model, "shelf": name, "prompts": prompts}
        return Shelf(self.root / model / name / prompts, label, widths)

    def _describe(self, spec: ModelSpec) -> str:
        path = self.root / spec.digest / "spec.json"
        if not path.exists():
            with suppress(OSError, RemoteError):  # a store that cannot be written says so when it must be
                write_whole(path, json.dumps(spec.as_dict(), indent=1).encode(), private=True)
        return spec.digest


# What lies in a store: its models with size and last use, what is wrong with it, and what can go


@dataclass(frozen=True)
class StoredModel:
    """What a store holds of one model."""

    name: str  # what people call it; `unknown` if its spec cannot be read
    folder: Place
    revision: str | None
    images: int
    prompts: int
    blocks: int
    bytes: int
    last_used: float  # seconds since 1970: when the last block or manifest was written, or a complete sheet was read


@dataclass
class Findings:
    """What a check of a store found."""

    blocks: int = 0
    rows: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What makes no score wrong: files that nobody needs, folders that others can open."""

    def refuse_strange(self, folder: Place, known: set[str], *endings: str) -> None:
        """Report what does not belong into a folder."""
        names = [entry.name for entry in listing(folder)]
        strange = [name for name in names if name not in known and not name.endswith((*endings, *LEFT))]
        self.problems += [f"{folder / name}: no part of a store." for name in strange]


def stored_models(store: Store) -> list[StoredModel]:
    """The models of a store, the last used first; block contents are counted, not checked."""
    models = [_stored_model(folder) for folder in _model_folders(store)]
    return sorted(models, key=lambda model: -model.last_used)


def remove_models(models: Sequence[StoredModel]) -> None:
    """Delete all that a store holds of some models; a kill in the middle leaves leftovers, never half a model."""
    for model in models:
        if isinstance(model.folder, RemotePath):  # what is left of a model has no manifest: its blocks are sound
            remove_tree(model.folder / "complete")
            remove_tree(model.folder)
        else:
            away = model.folder.with_suffix(".removed")
            remove_tree(away)
            remove_tree(model.folder.rename(away))


def leftovers(store: Store) -> list[Place]:
    """Blocks that were set aside, temporary files of stopped runs (a day old), and what is left of removed models."""
    found = [(path, status) for path, status in walk(store.root) if path.suffix in LEFT]
    young = time.time() - DAY
    return sorted(path for path, status in found if path.suffix != ".part" or status.st_mtime < young)


def remove_leftovers(paths: Sequence[Place]) -> None:
    """Delete them."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)


def size_of(path: Place) -> int:
    """Bytes of a file, or of all files in a folder."""
    own = 0 if path.is_dir() else path.lstat().st_size
    return own + sum(status.st_size for _, status in walk(path) if not status.is_folder)


def verify_store(store: Store, progress: Progress = silent) -> Findings:
    """Check every block, manifest, spec and remembered digest; nothing is changed."""
    folders, found = _model_folders(store), Findings()
    found.problems += ImageDigests(store.digest_memory).problems(progress)
    for folder in folders:
        _verify_model(store, folder, found, progress)
    folders_there = {entry.name for entry in listing(store.root) if entry.is_folder}  # studies keep some there
    memory = store.digest_memory.name
    found.refuse_strange(store.root, {memory, f"{memory}-journal", *folders_there})
    found.notes += [
        f"{path}: nobody needs it. `beholder store clean --leftovers` removes it." for path in leftovers(store)
    ]
    if not isinstance(store.root, RemotePath) and store.root.stat().st_mode & 0o077:
        found.notes.append(f"{store.root}: others than its owner can open it. Close it with: chmod -R go= {store.root}")
    return found


def _model_folders(store: Store) -> list[Place]:
    if not store.root.is_dir():
        raise MissingData(f"There is no store at {store.root}. Name it with --store DIR.")
    return [store.root / each.name for each in listing(store.root) if each.is_folder and MODEL.fullmatch(each.name)]


def _spec(folder: Place) -> Fields:
    with suppress(OSError, ValueError):
        spec = json.loads((folder / "spec.json").read_text())
        return spec if isinstance(spec, dict) else {}
    return {}


def _stored_model(folder: Place) -> StoredModel:
    files = [(path, status) for path, status in walk(folder) if not status.is_folder]
    blocks = [path for path, status in files if path.suffix == ".parquet" and status.st_size]
    images: dict[Place, int] = {}
    prompts: dict[Place, int] = {}
    for path in blocks:
        with suppress(OSError, pa.ArrowException), path.open("rb") as file:
            about = pq.ParquetFile(file)
            shelf, rows = path.parent, about.metadata.num_rows
            if shelf.name == "texts":
                prompts[shelf] = prompts.get(shelf, 0) + rows
            else:
                images[shelf] = images.get(shelf, 0) + rows
                prompts[shelf] = about.schema_arrow.field(1).type.list_size if shelf.name != "images" else 0
    spec = _spec(folder)
    return StoredModel(
        str(spec.get("name", "unknown")),
        folder,
        str(spec["revision"]) if "revision" in spec else None,
        max(images.values(), default=0),
        sum(prompts.values()),
        len(blocks),
        sum(status.st_size for _, status in files),
        max((status.st_mtime for _, status in files), default=folder.stat().st_mtime),
    )


def _verify_model(store: Store, folder: Place, found: Findings, progress: Progress) -> None:
    spec = _spec(folder)
    try:
        model = ModelSpec(**{name: value for name, value in spec.items() if name != "digest"})
        if model.digest != folder.name:
            found.problems.append(f"{folder / 'spec.json'}: describes another model ({model.name}).")
    except TypeError:
        found.problems.append(f"{folder / 'spec.json'}: is missing or damaged.")
    shelves = [store.shelf(folder.name, name) for name in ("images", "texts") if (folder / name).is_dir()]
    shelves += [store.shelf(folder.name, "scores", entry.name) for entry in listing(folder / "scores")]
    label = str(spec.get("name", folder.name))
    contents = {shelf.folder: _verify_shelf(shelf, found, progress, label) for shelf in shelves}
    for path in (folder / "complete" / entry.name for entry in listing(folder / "complete")):
        if path.suffix not in LEFT and (reason := _wrong_manifest(path, folder, contents)):
            found.problems.append(f"{path}: {reason}")
    found.refuse_strange(folder, {"spec.json", "complete", "images", "texts", "scores"})


def _verify_shelf(shelf: Shelf, found: Findings, progress: Progress, model: str) -> int:
    """Check all blocks of a shelf; the number of different keys on it."""
    blocks = list(shelf.blocks())
    keys: set[str] = set()
    with progress(f"{model}: checking {shelf.folder.name}", len(blocks), 0) as advance:
        for path in blocks:
            try:
                own = shelf.keys(path)
                keys.update(own)
                found.blocks, found.rows = found.blocks + 1, found.rows + len(own)
            except (BadBlock, OSError, RemoteError) as error:
                found.problems.append(f"{path}: {error}.")
            advance(1)
    found.refuse_strange(shelf.folder, {INDEX}, ".parquet")
    return len(keys)


def _wrong_manifest(path: Place, folder: Place, contents: Mapping[Place, int]) -> str:
    try:
        manifest = json.loads(path.read_text())
        needed, prompts = int(manifest["contents"]), str(manifest["prompts_digest"])
    except (OSError, ValueError, LookupError, TypeError):
        return "is damaged, or was written by an older version."
    held = contents.get(folder / "images", contents.get(folder / "scores" / prompts, 0))
    return f"says that {needed:,} contents were scored; {held:,} are here." if held < needed else ""
