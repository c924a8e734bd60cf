"""The store: what was scored once is never scored again.

    STORE/<spec digest>/spec.json
    STORE/<spec digest>/images/<block>.parquet            unit vectors by image content (contrastive models)
    STORE/<spec digest>/texts/<block>.parquet             unit vectors by text
    STORE/<spec digest>/scores/<prompts>/<block>.parquet  cells by image content (all other models)
    STORE/<spec digest>/complete/<sheet>.json             a manifest, written last: this sheet is complete

A block is written whole or not at all (a temporary file, flushed to the disk, then renamed), is named after its
keys and its bytes and never changed: several processes may fill one store, and a kill at any moment costs only
unwritten rows.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from beholder.core.digests import digest
from beholder.core.files import write_whole
from beholder.models.spec import ModelSpec

Floats = npt.NDArray[np.float32]
log = logging.getLogger(__name__)


class Store:
    """Everything scored so far, by model."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def digest_memory(self) -> Path:
        """Where file digests are remembered."""
        return self.root / "digests.sqlite"

    def images(self, spec: ModelSpec) -> Shelf:
        """The image vectors of a contrastive model."""
        return Shelf(self._model(spec) / "images")

    def texts(self, spec: ModelSpec) -> Shelf:
        """The text vectors of a contrastive model."""
        return Shelf(self._model(spec) / "texts")

    def scores(self, spec: ModelSpec, prompts_digest: str) -> Shelf:
        """The cells of a model that scores pairs."""
        return Shelf(self._model(spec) / "scores" / prompts_digest)

    def complete(self, spec: ModelSpec, sheet: str, manifest: Mapping[str, object]) -> None:
        """Say that a sheet is complete."""
        write_whole(self._model(spec) / "complete" / f"{sheet}.json", json.dumps(manifest, indent=1).encode())

    def _model(self, spec: ModelSpec) -> Path:
        folder = self.root / spec.digest
        if not (folder / "spec.json").exists():
            write_whole(folder / "spec.json", json.dumps(spec.as_dict(), indent=1).encode())
        return folder


class Shelf:
    """Rows of float32 by key, in blocks. Each channel of a row is a list of one fixed length."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._location: dict[str, tuple[Path, int]] = {}
        self._seen: set[Path] = set()

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys that no block holds yet, in order, each once; looks for blocks of other processes first."""
        self._look()
        return [key for key in dict.fromkeys(keys) if key not in self._location]

    def has(self, key: str) -> bool:
        """Whether a block that was seen holds this key."""
        return key in self._location

    def put(self, keys: Sequence[str], channels: Mapping[str, Floats]) -> None:
        """Write one block; `channels[name]` has a row per key."""
        columns = {name: _fixed_lists(values) for name, values in channels.items()}
        table = pa.table({"key": pa.array(list(keys), pa.string()), **columns})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", use_dictionary=False)
        data = sink.getvalue().to_pybytes()
        path = self.folder / f"{digest(list(keys))}-{_content(data)}.parquet"
        write_whole(path, data)
        self._index(path, list(keys))

    def read(self, keys: Sequence[str]) -> dict[str, Floats]:
        """The rows of these keys, in order, by channel; every key must be there."""
        locations = [self._location[key] for key in keys]
        result: dict[str, Floats] = {}
        for path in dict.fromkeys(path for path, _ in locations):
            table = pq.read_table(path)
            targets = np.array([i for i, location in enumerate(locations) if location[0] == path])
            sources = np.array([locations[i][1] for i in targets])
            for name in table.column_names[1:]:
                block = _rows(table[name])
                result.setdefault(name, np.empty((len(keys), block.shape[1]), np.float32))[targets] = block[sources]
        return result

    def _look(self) -> None:
        if not self.folder.is_dir():
            return
        for path in sorted(set(self.folder.glob("*.parquet")) - self._seen):
            try:
                self._index(path, _checked_keys(path))
            except (OSError, pa.ArrowException, KeyError) as error:
                self._set_aside(path, error)

    def _index(self, path: Path, keys: Sequence[str]) -> None:
        self._seen.add(path)
        for row, key in enumerate(keys):
            self._location.setdefault(key, (path, row))

    def _set_aside(self, path: Path, error: Exception) -> None:
        """A block that cannot be read (a failing disk) counts as missing; it is kept for whoever wants to look."""
        log.warning("%s cannot be read (%s): it is set aside and its rows are scored again", path, error)
        with suppress(FileNotFoundError):  # another process may have been quicker
            path.rename(path.with_suffix(".damaged"))


def _checked_keys(path: Path) -> list[str]:
    """A block's keys, if its bytes are those that were written: a flipped bit would be read as another score."""
    data = path.read_bytes()
    _, _, content = path.stem.partition("-")
    if content and content != _content(data):  # blocks of older versions do not tell
        raise OSError("its bytes are not those that were written")
    keys: list[str] = pq.read_table(pa.BufferReader(data), columns=["key"])["key"].to_pylist()
    return keys


def _content(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=10).hexdigest()


def _fixed_lists(values: Floats) -> pa.FixedSizeListArray:
    flat = np.ascontiguousarray(values, dtype=np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


def _rows(column: pa.ChunkedArray) -> Floats:
    lists = column.combine_chunks()
    return np.asarray(lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), -1), dtype=np.float32)
