"""The store: what was scored once is never scored again.

    STORE/digests.sqlite                                  digests of image files (`core/digests.py`)
    STORE/<spec digest>/spec.json
    STORE/<spec digest>/images/<block>.parquet            unit vectors by image content (contrastive models)
    STORE/<spec digest>/texts/<block>.parquet             unit vectors by text
    STORE/<spec digest>/scores/<prompts>/<block>.parquet  cells by image content (all other models)
    STORE/<spec digest>/complete/<matrix>.json            a manifest, written last: this matrix is complete
    STORE/<spec digest>/**/index                          where the rows of a shelf's blocks are (`shelf.py`)

A block (`shelf.py`) is written whole or not at all (a temporary file, flushed to the disk, then renamed) and never
changed: several processes may fill one store, and a kill at any moment costs only unwritten rows. Vectors of faces can
be personal data: whatever is made here is for its owner alone.

STORE may be a URI (`s3://bucket/scores`). There a block is put as one object. Digests of files behind URIs are kept in
blocks too (`STORE/digests/`), for the next machine; this machine's own copy is in the user's cache.
"""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from beholder.core.digests import SharedDigests, digest
from beholder.core.errors import MissingData, RemoteError
from beholder.core.files import (
    Place,
    RemotePath,
    Status,
    cache_folder,
    is_dead,
    listing,
    place,
    remove_tree,
    walk,
    write_whole,
)
from beholder.core.progress import Progress, silent
from beholder.core.read import column_in
from beholder.core.record import Record
from beholder.core.types import Fields
from beholder.datasets import DATASETS, load_dataset, own_data, require_asked
from beholder.datasets.dataset import Dataset, ImageDigests
from beholder.datasets.labels import Map, mapped
from beholder.models.scorer import cosines
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import SCHEMA as PROMPT
from beholder.prompts.prompt_set import PromptSet
from beholder.scores.score_matrix import PICTURES, ScoreMatrix, Task
from beholder.scores.shelf import INDEX, LONGEST, BadBlock, Mask, Shelf

LEFT = (".part", ".damaged", ".removed")  # how the names of files end that nobody needs any more
MODEL = re.compile(r"[0-9a-f]{20}")


class Store:
    """Everything scored so far, by model."""

    def __init__(self, root: str | Place) -> None:
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

    def complete(self, spec: ModelSpec, matrix: str, manifest: Mapping[str, object]) -> None:
        """Say that a matrix is complete; the date of the file says when it was last used."""
        path, data = self.root / spec.digest / "complete" / f"{matrix}.json", json.dumps(manifest, indent=1).encode()
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
        if not path.is_file():
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
    last_used: float  # seconds since 1970: when the last block or manifest was written, or a complete matrix was read


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
    return sorted(map(_stored_model, _model_folders(store)), key=lambda model: -model.last_used)


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


def leftovers(store: Store) -> dict[Place, Status]:
    """Blocks that were set aside, temporary files of ended processes (of other machines: a day old), removed models."""
    found = sorted((path, status) for path, status in walk(store.root) if path.suffix in LEFT)
    young = time.time() - 86400.0  # a temporary file of less than a day may still be in use
    return {path: at for path, at in found if path.suffix != ".part" or at.st_mtime < young or is_dead(path)}


def remove_leftovers(files: Mapping[Place, Status]) -> None:
    for path, status in files.items():
        remove_tree(path) if status.is_folder else path.unlink(missing_ok=True)


def size_of(files: Mapping[Place, Status]) -> int:
    """Bytes of these files, and of all files in those that are folders."""
    inside = (status for folder in files if files[folder].is_folder for _, status in walk(folder))
    return sum(status.st_size for status in (*files.values(), *inside) if not status.is_folder)


def verify_store(store: Store, progress: Progress = silent) -> Findings:
    """Check every block, manifest, spec and remembered digest; nothing is changed."""
    folders, found = _model_folders(store), Findings()
    found.problems += ImageDigests(store.digest_memory).problems(progress)
    for folder in folders:
        _verify_model(store, folder, found, progress)
    folders_there = {entry.name for entry in listing(store.root) if entry.is_folder}  # studies keep some there
    memory = store.digest_memory.name
    found.refuse_strange(store.root, {memory, f"{memory}-journal", *folders_there})
    unneeded = "nobody needs it. `beholder store clean --leftovers` removes it."
    found.notes += [f"{path}: {unneeded}" for path in leftovers(store)]
    if not isinstance(store.root, RemotePath) and store.root.stat().st_mode & 0o077:
        found.notes.append(f"{store.root}: others than its owner can open it. Close it with: chmod -R go= {store.root}")
    return found


def _model_folders(store: Store) -> list[Place]:
    if not store.root.is_dir():
        raise MissingData(f"There is no store at {store.root}. Name it with --store DIR.")
    return [store.root / each.name for each in listing(store.root) if each.is_folder and MODEL.fullmatch(each.name)]


def _spec(folder: Place) -> Fields:
    with suppress(OSError, ValueError, RecursionError):
        spec = json.loads((folder / "spec.json").read_bytes())
        return spec if isinstance(spec, dict) else {}
    return {}


def _stored_model(folder: Place) -> StoredModel:
    files = [(path, status) for path, status in walk(folder) if not status.is_folder]
    blocks = [path for path, status in files if path.suffix == ".parquet" and status.st_size]
    images, prompts = Counter[Place](), Counter[Place]()
    for path in blocks:
        with suppress(OSError, pa.ArrowException), path.open("rb") as file:
            about = pq.ParquetFile(file)
            shelf, rows = path.parent, about.metadata.num_rows
            if shelf.name == "texts":
                prompts[shelf] += rows
            else:
                images[shelf] += rows
                prompts[shelf] = about.schema_arrow.field(1).type.list_size if shelf.name != "images" else 0
    spec = _spec(folder)
    revision = str(spec["revision"]) if "revision" in spec else None
    size = sum(status.st_size for _, status in files)
    last_used = max((status.st_mtime for _, status in files), default=folder.stat().st_mtime)
    counts = max(images.values(), default=0), sum(prompts.values()), len(blocks), size
    return StoredModel(str(spec.get("name", "unknown")), folder, revision, *counts, last_used)


def _verify_model(store: Store, folder: Place, found: Findings, progress: Progress) -> None:
    spec = _spec(folder)
    try:
        model = ModelSpec(**{name: value for name, value in spec.items() if name != "digest"})
        if model.digest != folder.name:
            found.problems.append(f"{folder / 'spec.json'}: describes another model ({model.name}).")
    except (TypeError, ValueError):
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
    with progress(f"{model}: checking {shelf.folder.name}", len(blocks), 0, unit="blocks") as advance:
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
        manifest = json.loads(path.read_bytes())
        needed, prompts = int(manifest["contents"]), str(manifest["prompts_digest"])
    except (OSError, ValueError, LookupError, TypeError):
        return "is damaged, or was written by an older version."
    held = contents.get(folder / "images", contents.get(folder / "scores" / prompts, 0))
    return f"says that {needed:,} contents were scored; {held:,} are here." if held < needed else ""


# The scores behind a run, found by its record: which data, prompts and models they are of


def stored_scores(tasks: Sequence[Task], spec: ModelSpec, store: Store) -> list[ScoreMatrix]:
    """Every task's matrix as far as the store has it: images without scores are left out, tasks without any too."""
    if not store.holds(spec):
        return []
    uris = list(dict.fromkeys(uri for task in tasks for uri in task.dataset.table["uri"]))
    keys = dict(zip(uris, store.image_digests().of(uris), strict=True))
    return [made for task in tasks if (made := _stored(task, keys, spec, store)) is not None]


def _stored(task: Task, keys: dict[str, str | None], spec: ModelSpec, store: Store) -> ScoreMatrix | None:
    texts = store.texts(spec)
    contrastive = texts.folder.is_dir() or store.images(spec).folder.is_dir()
    shelf = store.images(spec) if contrastive else store.scores(spec, task.prompts.digest)
    own_keys = np.array([keys[uri] or "" for uri in task.dataset.table["uri"]], f"S{LONGEST}")
    there = ~shelf.lacks(own_keys)
    if not there.any() or (contrastive and task.kind != PICTURES and texts.missing(task.prompts.texts)):
        return None
    return read_matrix(task, own_keys, there, shelf, texts if contrastive else None, spec)


def read_matrix(
    task: Task, keys: npt.NDArray[np.bytes_], there: Mask, shelf: Shelf, texts: Shelf | None, spec: ModelSpec
) -> ScoreMatrix:
    """A task's matrix, of the images that are `there`: rows of a shelf, or cosines of its vectors with the `texts`'."""
    channels, words = tuple(shelf.widths or ()), None
    if texts is not None:
        channels = ("cosine",)
        words = shelf.vectors(keys) if task.kind == PICTURES else texts.read(task.prompts.texts)["vector"]
    cells = np.empty((int(there.sum()), len(task.prompts), len(channels)), np.float32)
    for part, rows in shelf.parts(keys[there]):
        found = rows if words is None else {"cosine": cosines(rows["vector"], words)}
        cells[part] = np.stack([found[channel] for channel in channels], axis=2)
    return task.matrix(cells, channels, images=task.dataset.table.filter(there), settings=spec.settings)


@dataclass(frozen=True)
class Places:
    """Where pictures and scores lie."""

    data: Path | None = None
    store: Place = Path("beholder-store")
    settings: Mapping[str, str] = field(default_factory=dict)
    asked: bool = False  # whether this program's user named the data sets, and not a file of somebody's


class Scored(NamedTuple):
    """A prompt set that was asked of one model on one data set."""

    study: str
    spec: ModelSpec
    task: Task
    root: Path | None  # the folder that its pictures lie in; None for drawn people


def recorded(record: Record, prompts: pl.DataFrame, places: Places) -> Iterator[Scored]:
    """Everything that a run asked of models; scores made elsewhere are not in a store."""
    for entry in record.datasets:
        dataset, root = _opened(entry, places, record.settings.get("map") or {})
        asked = prompts.filter(dataset=dataset.name)
        for (study, name), table in asked.group_by(["study", "set"], maintain_order=True):
            for asked_so in _ways(table.select(list(PROMPT))):
                task = Task(str(name), dataset, PromptSet(str(name), asked_so))
                for spec in chain.from_iterable(recorded_specs(record).values()):
                    yield Scored(str(study), spec, task, root)


def _ways(prompts: pl.DataFrame) -> list[pl.DataFrame]:
    """A prompt set as each kind of model was asked it: a prompt stands twice if some read another text of it."""
    order = prompts.select("prompt_id").unique(maintain_order=True)
    ways = [prompts.unique("prompt_id", keep="first"), prompts.unique("prompt_id", keep="last")]
    found = [order.join(way, on="prompt_id", maintain_order="left").select(prompts.columns) for way in ways]
    return found if order.height < prompts.height else found[:1]


def recorded_specs(record: Record) -> dict[str, list[ModelSpec]]:
    """The models of a run by name, each in every way in which it was asked; those of imported scores have no spec."""
    names = set(ModelSpec.__dataclass_fields__)
    specs = [ModelSpec(**{name: each[name] for name in names}) for each in record.models if names <= set(each)]
    return {spec.name: [each for each in specs if each.name == spec.name] for spec in specs}


def _opened(entry: Fields, places: Places, maps: Mapping[str, Map]) -> tuple[Dataset, Path | None]:
    """A data set of the record, and the folder that its pictures must lie in."""
    name, origin = str(entry.get("name")), str(entry.get("origin"))
    source = name if name in DATASETS else origin
    if not places.asked:
        require_asked(source, places.data)
    dataset = load_dataset(source, places.data, places.settings)
    dataset = mapped(dataset, {name: maps[name] for name in maps if column_in(dataset.table, name) in dataset.table})
    if source in DATASETS and DATASETS[source].embedded:
        return dataset, None
    root = places.data if source in DATASETS else Path(own_data(source)[1])
    assert root is not None
    folder = root if root.is_dir() else root.parent
    return replace(dataset, partial=True).present(), folder.resolve()


def scores_of(asked: Iterable[Scored], stores: Sequence[Place], wanted: Mapping[str, str | None]) -> pl.DataFrame:
    """The raw scores with their labels, from whichever store has them; `wanted` names study, model, data set."""
    frames = [
        _tidy(matrix).select(*(pl.lit(value).alias(name) for name, value in whose.items()), pl.all())
        for study, spec, task, _ in asked
        for whose in [{"study": study, "model": spec.name, "dataset": task.dataset.name}]
        if all(value in (None, whose[name]) for name, value in wanted.items())
        for store in stores
        for matrix in stored_scores([task], spec, Store(store))
    ]
    if not frames:
        raise MissingData(
            f"{' and '.join(map(str, stores))} has no scores of this run.\nName the store that the audit used, "
            "store=DIR, or audit again. Scores that were read from files (beholder measure) are in those files."
        )
    return pl.concat(frames, how="diagonal_relaxed")  # an age is a number in one data set, a band in another


def _tidy(matrix: ScoreMatrix) -> pl.DataFrame:
    """One row for every image, prompt and channel, with labels; a prompt's that clash are `NAME_of_prompt`."""
    images = matrix.images
    prompts = matrix.prompts.select(name for name in matrix.prompts.columns if matrix.prompts[name].count())
    clashing = {name: f"{name}_of_prompt" for name in prompts.columns if name in images.columns}
    cells = images.join(prompts.rename(clashing), how="cross")
    parts = []
    for channel in matrix.channels:
        scores = np.asarray(matrix.channel(channel), np.float64).ravel()
        parts.append(cells.with_columns(pl.lit(channel).alias("channel"), pl.Series("score", scores, nan_to_null=True)))
    return pl.concat(parts)
