"""A shelf of the store: rows of float32 by key, in blocks that are written once and never changed.

A block is a Parquet file named after its keys and its seal (`core/seal.py`). What the seal covers says whose rows they
are: the model, the prompts, the channels and their widths, the keys. A block that does not fit its shelf is told, set
aside and taken as not there: it is scored again.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from beholder.core.digests import digest
from beholder.core.errors import DataError, first_line
from beholder.core.files import write_whole
from beholder.core.seal import seal

Floats = npt.NDArray[np.float32]
Label = Mapping[str, str]
Ints = npt.NDArray[np.int64]
log = logging.getLogger(__name__)

ABOUT = b"beholder"
"""Where a block's own metadata has what it says of itself."""
UNREADABLE = (errno.EIO, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ELOOP)
"""A block's own trouble; any other error of a disk is the machine's and ends the run."""
ROW_BITS = 32
RECENT = 1 << 16
SMALL, FEW, MERGED = 128, 64, 4096
"""Blocks of fewer rows than the first are small; as many as the second are merged into blocks of up to the third."""


class BadBlock(Exception):  # noqa: N818
    """A block that cannot be used, with the reason."""


class Shelf:
    """Each channel of a row is a list of one fixed length."""

    def __init__(self, folder: Path, label: Label, key: bytes, widths: Mapping[str, int] | None = None) -> None:
        """`label` says whose rows these are, `key` seals them; without `widths` of channels the first block decides."""
        self.folder = folder
        self._label = {"store": seal(key, b"store")[:8], **label}
        self._key, self._widths = key, widths
        self._blocks: list[Path] = []
        self._small: dict[int, int] = {}  # block → rows
        self._seen: set[str] = set()
        self._places = _Places()

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys that no block holds yet, in order, each once; looks for blocks of other processes first."""
        self._look()
        absent = self._places.find(keys) < 0
        return list(dict.fromkeys(keys[i] for i in np.flatnonzero(absent).tolist()))

    def has(self, key: str) -> bool:
        """Whether a block that was seen holds this key."""
        return self._places.has(key)

    def put(self, keys: Sequence[str], channels: Mapping[str, Floats]) -> None:
        """Write one block; `channels[name]` has a row per key."""
        assert all(np.isfinite(values).all() for values in channels.values())
        widths = {name: values.shape[1] for name, values in channels.items()}
        columns = {name: _fixed_lists(values) for name, values in channels.items()}
        table = pa.table({"key": pa.array(list(keys), pa.string()), **columns})
        about = json.dumps({"label": self._label, "widths": widths, "rows": len(keys)})
        sink = pa.BufferOutputStream()
        table = table.replace_schema_metadata({ABOUT: about.encode()})
        pq.write_table(table, sink, compression="zstd", use_dictionary=False)
        data = sink.getvalue().to_pybytes()
        path = self.folder / f"{digest(list(keys))}-{seal(self._key, data)}.parquet"
        write_whole(path, data, private=True)
        self._add(path, keys)

    def read(self, keys: Sequence[str]) -> dict[str, Floats]:
        """The rows of these keys, in order, by channel; every key must be there."""
        result: dict[str, Floats] = {}
        for block, targets, rows in self._by_block(keys):
            wanted = [keys[i] for i in targets]
            try:
                found = self._values(block, rows, wanted)
            except FileNotFoundError as error:  # another process has merged it, and maybe others, into a larger one
                self._places.drop({gone for gone, path in enumerate(self._blocks) if not path.exists()})
                if self.missing(wanted):
                    raise DataError(f"{self._blocks[block]} is gone. Run the same command again.") from error
                found = self.read(wanted)
            for name, values in found.items():
                result.setdefault(name, np.empty((len(keys), values.shape[1]), np.float32))[targets] = values
        return result

    def merge_small_blocks(self) -> None:
        """Write many small blocks as few large ones: a slow model, or one often stopped, leaves thousands.

        Safe at any moment: the large one is there before the small ones go, and rows may be there twice.
        """
        if len(self._small) < FEW or not os.access(self.folder, os.W_OK):
            return
        part: list[int] = []
        for block, rows in [*self._small.items(), (-1, MERGED)]:
            if sum(self._small[each] for each in part) + rows > MERGED:
                self._merge(part)
                part = []
            part.append(block)
        self._small = {}

    def one_of_each_block(self, keys: Sequence[str]) -> list[str]:
        """A key by chance of every block that holds some of these."""
        places = self._places.find(keys)
        shuffled = random.sample(range(len(keys)), len(keys))
        chosen = {int(places[i] >> ROW_BITS): keys[i] for i in shuffled if places[i] >= 0}
        return list(chosen.values())

    def distrust(self, keys: Sequence[str], reason: str) -> None:
        """Set aside the blocks that hold these keys."""
        blocks = {int(place) >> ROW_BITS for place in self._places.find(keys) if place >= 0}
        self._places.drop(blocks)
        self._set_aside([self._blocks[block] for block in blocks], reason)

    def check_writable(self, lacking: int, what: str) -> None:
        """Raise before the work if its results could not be kept."""
        there = next(place for place in (self.folder, *self.folder.absolute().parents) if place.exists())
        if not os.access(there, os.W_OK | os.X_OK):
            raise DataError(
                f"{there} is not writable, and the store lacks {lacking:,} {what}.\n"
                "Make it writable, or name another store: --store DIR."
            )

    def keys(self, path: Path) -> list[str]:
        """The keys of a block, if it belongs here and every number in it can be used."""
        keys: list[str] = self._opened(path, whole=True)["key"].to_pylist()
        return keys

    def blocks(self) -> Iterator[Path]:
        """The blocks in the folder, by name."""
        with suppress(FileNotFoundError, NotADirectoryError):
            names = sorted(entry.name for entry in os.scandir(self.folder) if entry.name.endswith(".parquet"))
            yield from (self.folder / name for name in names)

    def _look(self) -> None:
        unfit: defaultdict[str, list[Path]] = defaultdict(list)
        for path in self.blocks():
            if path.name in self._seen:
                continue
            try:
                self._add(path, self._opened(path)["key"].to_pylist())
            except FileNotFoundError:  # another process set it aside
                pass
            except BadBlock as error:
                unfit[str(error)].append(path)
        for reason, paths in unfit.items():
            self._set_aside(paths, reason)

    def _by_block(self, keys: Sequence[str]) -> Iterator[tuple[int, Ints, Ints]]:
        """Every block that holds some of these keys: its number, which of the keys, and their rows in it."""
        places = self._places.find(keys)
        assert (places >= 0).all()
        order = np.argsort(places >> ROW_BITS, kind="stable")
        for targets in np.split(order, np.flatnonzero(np.diff(places[order] >> ROW_BITS)) + 1) if len(keys) else []:
            yield int(places[targets[0]] >> ROW_BITS), targets, places[targets] & ((1 << ROW_BITS) - 1)

    def _add(self, path: Path, keys: Sequence[str]) -> None:
        self._seen.add(path.name)
        self._places.add(keys, len(self._blocks))
        if len(keys) < SMALL:
            self._small[len(self._blocks)] = len(keys)
        self._blocks.append(path)

    def _merge(self, blocks: Sequence[int]) -> None:
        paths = [self._blocks[block] for block in blocks]
        try:
            tables = [self._opened(path, whole=True) for path in paths]
        except (BadBlock, FileNotFoundError):  # another process merges them too, or the disk fails: they stay
            return
        if len(tables) > 1:
            whole = pa.concat_tables(tables)
            self._places.drop(set(blocks))
            self.put(whole["key"].to_pylist(), {name: _rows(whole[name]) for name in whole.column_names[1:]})
            for path in paths:
                path.unlink(missing_ok=True)

    def _set_aside(self, paths: Sequence[Path], reason: str) -> None:
        """Blocks that cannot be used count as missing; they are kept for whoever wants to look."""
        more = f" and {len(paths) - 1:,} more blocks there" if len(paths) > 1 else ""
        log.warning("%s%s: %s. Set aside (*.damaged) and taken as not scored.", paths[0], more, reason)
        for path in paths:
            self._seen.add(path.name)
            with suppress(OSError):  # another process may have been quicker, or the store is read-only
                path.rename(path.with_suffix(".damaged"))

    def _values(self, block: int, rows: Ints, keys: Sequence[str]) -> dict[str, Floats]:
        """Some rows of a block, which is checked again: it may have changed since it was seen."""
        try:
            table = self._opened(self._blocks[block], whole=True)
            if table["key"].take(rows).to_pylist() != list(keys):
                raise BadBlock("it has other rows than it had")
        except BadBlock as error:
            raise DataError(
                f"{self._blocks[block]} changed during the run ({error}). Run the same command again."
            ) from error
        return {name: _rows(table[name])[rows] for name in table.column_names[1:]}

    def _opened(self, path: Path, *, whole: bool = False) -> pa.Table:
        """A block's keys (its numbers too if `whole`), if it is one that was put on this shelf."""
        try:
            if not path.is_file():
                raise FileNotFoundError(path) if not os.path.lexists(path) else BadBlock("it is no file")
            data = path.read_bytes()
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            raise BadBlock(f"it cannot be read: {os.strerror(error.errno)}") from error
        if path.stem.partition("-")[2] != seal(self._key, data):
            raise BadBlock(self._why_unsealed(data))
        try:
            file = pq.ParquetFile(pa.BufferReader(data))
            self._fit(json.loads(file.schema_arrow.metadata[ABOUT]), file.schema_arrow)
            table = file.read(None if whole else ["key"])
        except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
            raise BadBlock(f"it is no block of a store: {first_line(error)}") from error
        if whole and not all(np.isfinite(_rows(table[name])).all() for name in table.column_names[1:]):
            raise BadBlock("it holds NaN or infinite numbers")
        return table

    def _why_unsealed(self, data: bytes) -> str:
        """The reason for a person; bytes without a seal are searched, not parsed."""
        if ABOUT not in data and data[:4] == data[-4:] == b"PAR1":
            return "it was written by an older version, which did not note whose rows they are"
        if ABOUT in data and self._label["store"].encode() not in data:
            return "it was written in another store"
        return "its bytes are not those that were written"

    def _fit(self, about: Mapping[str, Mapping[str, object]], schema: pa.Schema) -> None:
        """Raise if a block belongs to another shelf."""
        label, widths = about["label"], about["widths"]
        other = [name for name in {**label, **self._label} if label.get(name) != self._label.get(name)]
        if other:
            raise BadBlock(f"it belongs to another place of the store (other {', '.join(other)})")
        columns = {field.name: field.type for field in schema if field.name != "key"}
        if columns != {name: pa.list_(pa.float32(), width) for name, width in widths.items()}:
            raise BadBlock("its columns are not those that it names")
        if self._widths is None:
            self._widths = {name: int(str(width)) for name, width in widths.items()}
        if dict(self._widths) != dict(widths):
            raise BadBlock(f"it has the channels {dict(widths)}, not {dict(self._widths)}")


class _Places:
    """Where the row of each key is: block and row in one number. In arrays, a million rows take 16 MB.

    Keys are told apart by their hash; whoever reads a row compares the key itself.
    """

    def __init__(self) -> None:
        self._hashes, self._found = np.empty(0, np.int64), np.empty(0, np.int64)
        self._recent: dict[int, int] = {}

    def add(self, keys: Sequence[str], block: int) -> None:
        """Note the rows of a block; a key that is known stays where it was."""
        for row, key in enumerate(keys):
            self._recent.setdefault(hash(key), block << ROW_BITS | row)
        if len(self._recent) > RECENT:
            self._sort_in()

    def find(self, keys: Sequence[str]) -> Ints:
        """The place of each key; -1 if there is none."""
        hashes = np.fromiter(map(hash, keys), np.int64, len(keys))
        found = np.full(len(keys), -1, np.int64)
        if len(self._hashes):
            near = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
            known = self._hashes[near] == hashes
            found[known] = self._found[near[known]]
        if self._recent:
            for i in np.flatnonzero(found < 0):
                found[i] = self._recent.get(int(hashes[i]), -1)
        return found

    def has(self, key: str) -> bool:
        """Whether one key has a place; several times as quick as asking `find`."""
        number = hash(key)
        near = int(self._hashes.searchsorted(number))
        return number in self._recent or (near < len(self._hashes) and int(self._hashes[near]) == number)

    def drop(self, blocks: set[int]) -> None:
        """Forget the rows of some blocks."""
        self._sort_in()
        keep = ~np.isin(self._found >> ROW_BITS, list(blocks))
        self._hashes, self._found = self._hashes[keep], self._found[keep]

    def _sort_in(self) -> None:
        hashes = np.concatenate([self._hashes, np.fromiter(self._recent, np.int64, len(self._recent))])
        found = np.concatenate([self._found, np.fromiter(self._recent.values(), np.int64, len(self._recent))])
        self._hashes, first = np.unique(hashes, return_index=True)  # the first of equal ones: that known before
        self._found, self._recent = found[first], {}


def _fixed_lists(values: Floats) -> pa.FixedSizeListArray:
    flat = np.ascontiguousarray(values, dtype=np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


def _rows(column: pa.ChunkedArray) -> Floats:
    lists = column.combine_chunks()
    return np.asarray(lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), -1), dtype=np.float32)
