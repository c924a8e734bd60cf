"""A shelf of the store: rows of float32 by key, in blocks that are written once and never changed.

A block is a Parquet file named after its keys and the digest of its bytes. It says whose rows they are: the model, the
prompts, the channels and their widths, the keys. A block that is damaged or does not fit its shelf is reported, set
aside and taken as not there: it is scored again.

A block is checked whenever rows are read from it. So that opening a shelf does not read all of it, an index notes the
keys of blocks that were seen and their size, date and inode (behind a URI: their tag). It begins with its own digest;
a block that is not as it was noted is opened again, and without an index all are.
"""

import errno
import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import compress, count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from beholder.core.digests import content_digest, digest
from beholder.core.errors import DataError, RemoteError, first_line
from beholder.core.files import Place, RemotePath, Status, can_write, listing, write_whole

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Keys = Sequence[str] | npt.NDArray[np.bytes_]  # strings, or an array of bytes: a million Python strings take 90 MB
log = logging.getLogger(__name__)

ABOUT = b"beholder"  # where a block's own metadata has what it says of itself
UNREADABLE = (errno.EIO, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ELOOP)
"""A block's own trouble; any other error of a disk is the machine's and ends the run."""
ROW_BITS = 32
ROW = (1 << ROW_BITS) - 1
RECENT = 1 << 16
LONGEST = 40  # bytes of a key; a longer one stands by its digest, which has as many
FACTOR = 0x9E3779B97F4A7C15  # odd, with its bits well mixed: multiplied by it, keys that differ little differ much
INDEX, INDEXED_FROM = "index", 32  # the index of a shelf is written when so many blocks are not in it
SMALL, FEW, MERGED = 2048, 64, 4096
"""Blocks of fewer rows than the first are small; as many as the second are merged into blocks of up to the third."""


class BadBlock(Exception):  # noqa: N818
    """A block that cannot be used, with the reason."""


class _Block(NamedTuple):
    path: Place
    stamp: str  # empty: written here, and not looked at since
    rows: int


class Shelf:
    """Each channel of a row is a list of one fixed length."""

    def __init__(self, folder: Place, label: Mapping[str, str], widths: Mapping[str, int] | None = None) -> None:
        """`label` says whose rows these are; without `widths` of channels the first block decides."""
        self.folder, self._label, self.widths = folder, dict(label), widths
        self._blocks: list[_Block] = []
        self._small: list[int] = []
        self._seen: set[str] = set()
        self._places = _Places()

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys that no block holds yet, in order, each once; looks for blocks of other processes first."""
        return list(dict.fromkeys(keys[i] for i in np.flatnonzero(self.lacks(keys)).tolist()))

    def lacks(self, keys: Keys) -> Mask:
        """Whether no block holds a key yet; looks for blocks of other processes first."""
        self._look()
        return ~self.has(keys)

    def has(self, keys: Keys) -> Mask:
        """Whether a block that was seen holds each of these keys."""
        return np.asarray(self._places.find(keys) >= 0)

    def put(self, keys: Sequence[str], channels: Mapping[str, Floats]) -> None:
        """Write one block; `channels[name]` has a row per key."""
        assert all(np.isfinite(values).all() for values in channels.values())
        widths = {name: values.shape[1] for name, values in channels.items()}
        columns: dict[str, pa.Array] = {"key": pa.array(list(keys), pa.string())}
        for name, values in channels.items():
            flat = np.ascontiguousarray(values, dtype=np.float32).ravel()
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(flat), widths[name])
        table = pa.table(columns)
        about = json.dumps({"label": self._label, "widths": widths, "rows": len(keys)})
        sink = pa.BufferOutputStream()
        table = table.replace_schema_metadata({ABOUT: about.encode()})
        pq.write_table(table, sink, compression="zstd", use_dictionary=False)
        data = sink.getvalue().to_pybytes()
        path = self.folder / f"{digest(list(keys))}-{content_digest(data)}.parquet"
        write_whole(path, data, private=True)
        self._add(path, "", keys)

    def read(self, keys: Keys) -> dict[str, Floats]:
        """The rows of these keys, in order, by channel; every key must be there."""
        result: dict[str, Floats] = {}
        places = self._places.find(keys)
        assert (places >= 0).all()
        order = np.argsort(places >> ROW_BITS, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(places[order] >> ROW_BITS)) + 1) if len(keys) else []
        for targets in parts:
            wanted = _texts(keys[targets] if isinstance(keys, np.ndarray) else [keys[i] for i in targets])
            path = self._blocks[int(places[targets[0]] >> ROW_BITS)].path
            try:
                found = self._values(path, places[targets] & ROW, wanted)
            except FileNotFoundError as error:  # another process has merged it, and maybe others, into a larger one
                self._places.drop({gone for gone, block in enumerate(self._blocks) if not block.path.is_file()})
                if self.missing(wanted):
                    raise DataError(f"{path} is gone. Run the same command again.") from error
                found = self.read(wanted)
            for name, values in found.items():
                result.setdefault(name, np.empty((len(keys), values.shape[1]), np.float32))[targets] = values
        return result

    def vectors(self, keys: npt.NDArray[np.bytes_]) -> Floats:
        """The vector of each key, NaN where there is none."""
        there = self.has(keys)
        known = self.read(keys[there])["vector"]
        vectors = np.full((len(keys), known.shape[1]), np.nan, np.float32)
        vectors[there] = known
        return vectors

    def parts(self, keys: Keys, rows: int = 1 << 14) -> Iterator[tuple[slice, dict[str, Floats]]]:
        """The same, some keys at a time: the rows of a million images would take gigabytes."""
        for start in range(0, len(keys), rows):
            part = slice(start, start + rows)
            yield part, self.read(keys[part])

    def merge_small_blocks(self) -> None:
        """Write many small blocks as few large ones, which are there before the small ones go: safe at any moment."""
        if len(self._small) < FEW or not can_write(self.folder):
            return
        part: list[int] = []
        for block in self._small.copy():
            if part and sum(self._blocks[each].rows for each in (*part, block)) > MERGED:
                self._merge(part)
                part = []
            part.append(block)
        self._merge(part)
        self._small = []

    def one_of_each_block(self, keys: Keys) -> list[int]:
        """Which of the keys stand, by chance, for the blocks that hold some of them."""
        places = self._places.find(keys)
        order = np.random.default_rng().permutation(np.flatnonzero(places >= 0))
        return [int(each) for each in order[np.unique(places[order] >> ROW_BITS, return_index=True)[1]]]

    def distrust(self, keys: Sequence[str], reason: str) -> None:
        """Set aside the blocks that hold these keys."""
        blocks = {int(place) >> ROW_BITS for place in self._places.find(keys) if place >= 0}
        self._places.drop(blocks)
        self._set_aside([self._blocks[block].path for block in blocks], reason)

    def check_writable(self, lacking: int, what: str) -> None:
        """Raise before the work if its results could not be kept."""
        if not can_write(self.folder):
            raise DataError(
                f"{self.folder} is not writable, and the store lacks {lacking:,} {what}.\n"
                "Make it writable, or name another store: --store DIR."
            )

    def keys(self, path: Place) -> list[str]:
        """The keys of a block, if it belongs here."""
        keys: list[str] = self._opened(path, ["key"])["key"].to_pylist()
        return keys

    def blocks(self) -> Iterator[Place]:
        """The blocks in the folder, by name."""
        return (self.folder / entry.name for entry in self._entries())

    def _entries(self) -> list[Status]:
        return [entry for entry in listing(self.folder) if entry.name.endswith(".parquet")]

    def _look(self) -> None:
        entries = self._entries()
        if not self._seen:
            self._take_index({entry.name: entry.stamp for entry in entries})
        unfit: defaultdict[str, list[Place]] = defaultdict(list)
        opened = 0
        for entry in entries:
            if entry.name in self._seen:
                continue
            path = self.folder / entry.name
            try:
                self._add(path, entry.stamp, self.keys(path))
                opened += 1
            except FileNotFoundError:  # another process set it aside
                pass
            except BadBlock as error:
                unfit[str(error)].append(path)
        for reason, paths in unfit.items():
            self._set_aside(paths, reason)
        if opened >= INDEXED_FROM:
            with suppress(OSError, RemoteError):  # a store that is only read
                self._write_index({entry.name for entry in entries})

    def _take_index(self, there: Mapping[str, str]) -> None:
        """Believe the index about the blocks that are as it notes them."""
        try:
            mark, _, data = (self.folder / INDEX).read_bytes().partition(b"\n")
        except OSError:
            return
        if mark.decode("ascii", "replace") != content_digest(data):
            return
        head, _, body = data.partition(b"\n")
        noted = json.loads(head)
        if noted["label"] != self._label or self.widths not in (None, noted["widths"]):
            return
        self.widths = noted["widths"]
        self._places = _Places(*np.frombuffer(body, "<i8").reshape(2, -1))
        self._blocks = [_Block(self.folder / name, stamp, rows) for name, stamp, rows in noted["blocks"]]
        same = [there.get(block.path.name) == block.stamp for block in self._blocks]
        self._seen = {block.path.name for block in compress(self._blocks, same)}
        self._small = [number for number in compress(count(), same) if self._blocks[number].rows < SMALL]
        self._places.drop({number for number, unchanged in enumerate(same) if not unchanged})

    def _write_index(self, there: set[str]) -> None:
        """Note what is known now of the blocks that were found in the folder."""
        noted = [place for place, block in enumerate(self._blocks) if block.stamp and block.path.name in there]
        rows = self._places.of_blocks(noted)
        sizes = np.bincount(rows[1] >> ROW_BITS, minlength=len(noted)).tolist()
        own = [self._blocks[place] for place in noted]
        blocks = [[block.path.name, block.stamp, size] for block, size in zip(own, sizes, strict=True)]
        head = json.dumps({"label": self._label, "widths": self.widths, "blocks": blocks})
        data = head.encode() + b"\n" + rows.astype("<i8").tobytes()
        write_whole(self.folder / INDEX, content_digest(data).encode() + b"\n" + data, private=True)

    def _add(self, path: Place, stamp: str, keys: Sequence[str]) -> None:
        self._seen.add(path.name)
        self._places.add(keys, len(self._blocks))
        if len(keys) < SMALL:
            self._small.append(len(self._blocks))
        self._blocks.append(_Block(path, stamp, len(keys)))

    def _merge(self, blocks: Sequence[int]) -> None:
        paths = [self._blocks[block].path for block in blocks]
        try:
            tables = [self._opened(path) for path in paths]
        except (BadBlock, FileNotFoundError):  # another process merges them too, or the disk fails: they stay
            return
        if len(tables) > 1:
            whole = pa.concat_tables(tables)
            self._places.drop(set(blocks))
            self.put(whole["key"].to_pylist(), {name: _rows(whole[name]) for name in whole.column_names[1:]})
            for path in paths:
                path.unlink(missing_ok=True)

    def _set_aside(self, paths: Sequence[Place], reason: str) -> None:
        """Blocks that cannot be used count as missing; they are kept for whoever wants to look."""
        more = f" and {len(paths) - 1:,} more blocks there" if len(paths) > 1 else ""
        log.warning("%s%s: %s. Set aside (*.damaged) and taken as not scored.", paths[0], more, reason)
        for path in paths:
            self._seen.add(path.name)
            with suppress(OSError, RemoteError):  # another process may have been quicker, or the store is read-only
                path.rename(path.with_suffix(".damaged"))  # type: ignore[arg-type]  # both here or both behind a URI

    def _values(self, path: Place, rows: Ints, keys: Sequence[str]) -> dict[str, Floats]:
        """Some rows of a block, which is checked again: it may have changed since it was seen."""
        try:
            table = self._opened(path)
            if table["key"].take(rows).to_pylist() != list(keys):
                raise BadBlock("it has other rows than it had")
        except BadBlock as error:
            self._set_aside([path], str(error))  # or an index that notes it would bring us here again
            raise DataError(f"{path} changed during the run ({error}). Run the same command again.") from error
        return {name: _rows(table[name])[rows] for name in table.column_names[1:]}

    def _opened(self, path: Place, columns: Sequence[str] | None = None) -> pa.Table:
        """A block, or some of its columns, if it is one that was put on this shelf."""
        try:
            if not isinstance(path, RemotePath) and not path.is_file():
                raise FileNotFoundError(path) if not os.path.lexists(path) else BadBlock("it is no file")
            data = path.read_bytes()
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            raise BadBlock(f"it cannot be read: {os.strerror(error.errno)}") from error
        if path.stem.partition("-")[2] != content_digest(data):
            raise BadBlock("its bytes are not those that were written")
        try:
            table = pq.ParquetFile(pa.BufferReader(data)).read(columns)
            self._fit(json.loads(table.schema.metadata[ABOUT]))
        except (pa.ArrowException, OSError, ValueError, TypeError, LookupError) as error:
            raise BadBlock(f"it is no block of a store: {first_line(error)}") from error
        return table

    def _fit(self, about: Mapping[str, Mapping[str, object]]) -> None:
        """Raise if a block belongs to another shelf."""
        label, widths = about["label"], dict(about["widths"])
        other = [name for name in {**label, **self._label} if label.get(name) != self._label.get(name)]
        if other:
            raise BadBlock(f"it belongs to another place of the store (other {', '.join(other)})")
        if self.widths is None:
            self.widths = {name: int(str(width)) for name, width in widths.items()}
        if dict(self.widths) != widths:
            raise BadBlock(f"it has the channels {widths}, not {dict(self.widths)}")


class _Places:
    """Where the row of each key is: block and row in one number. In arrays, a million rows take 16 MB.

    Keys are found by their hash; whoever reads a row compares the key itself. One thread may add while others ask.
    """

    def __init__(self, hashes: Ints | None = None, found: Ints | None = None) -> None:
        none = np.empty(0, np.int64)
        self._sorted = (none if hashes is None else hashes, none if found is None else found)
        self._recent: dict[int, int] = {}
        self._dropped: set[int] = set()

    def add(self, keys: Keys, block: int) -> None:
        """Note the rows of a block; a key that is known stays where it was."""
        for row, key in enumerate(hashed(keys).tolist()):
            self._recent.setdefault(key, block << ROW_BITS | row)
        if len(self._recent) > RECENT:
            self._sort_in()

    def find(self, keys: Keys) -> Ints:
        hashes, (known, places), recent = hashed(keys), self._sorted, self._recent
        found = np.full(len(keys), -1, np.int64)
        if len(known):
            near = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            there = known[near] == hashes
            found[there] = places[near[there]]
            if self._dropped:
                found[np.isin(found >> ROW_BITS, list(self._dropped))] = -1
        if recent:
            for i in np.flatnonzero(found < 0).tolist():
                found[i] = recent.get(int(hashes[i]), -1)
        return found

    def drop(self, blocks: set[int]) -> None:
        self._dropped |= blocks
        self._recent = {key: place for key, place in self._recent.items() if place >> ROW_BITS not in blocks}

    def of_blocks(self, blocks: Sequence[int]) -> Ints:
        """Hashes and places of the rows of some blocks, which are numbered anew."""
        self._sort_in()
        hashes, found = self._sorted
        numbers = np.full(max(blocks, default=-1) + 2, -1, np.int64)
        numbers[list(blocks)] = np.arange(len(blocks))
        number = numbers[np.minimum(found >> ROW_BITS, len(numbers) - 1)]
        keep = number >= 0
        return np.stack([hashes[keep], number[keep] << ROW_BITS | found[keep] & ROW])

    def _sort_in(self) -> None:
        """Put the recent ones in their places, without sorting the others again; what was known stays where it was."""
        known, places = self._sorted
        if self._dropped:
            keep = ~np.isin(places >> ROW_BITS, list(self._dropped))
            known, places = known[keep], places[keep]
        hashes = np.fromiter(self._recent, np.int64, len(self._recent))
        found = np.fromiter(self._recent.values(), np.int64, len(self._recent))
        order = np.argsort(hashes)
        hashes, found = hashes[order], found[order]
        at = np.searchsorted(known, hashes)
        if len(known):
            new = known[np.minimum(at, len(known) - 1)] != hashes
            hashes, found, at = hashes[new], found[new], at[new]
        self._sorted = np.insert(known, at, hashes), np.insert(places, at, found)
        self._recent, self._dropped = {}, set()


def hashed(keys: Keys) -> Ints:
    """64 bits for each key, the same in every process."""
    if not isinstance(keys, np.ndarray):
        keys = np.array([_short(key) for key in keys], f"S{LONGEST}")
    words = np.ascontiguousarray(keys, f"S{LONGEST}").view("<u8").reshape(len(keys), LONGEST // 8)
    result = np.zeros(len(keys), np.uint64)
    for column in words.T:
        result = (result ^ column) * np.uint64(FACTOR)
        result ^= result >> np.uint64(29)
    return result.view(np.int64)


def _short(key: str) -> bytes:
    data = key.encode("utf-8", "surrogatepass")
    return data if len(data) <= LONGEST else content_digest(data).encode()


def _texts(keys: Keys) -> list[str]:
    return [key.decode() for key in keys.tolist()] if isinstance(keys, np.ndarray) else list(keys)


def _rows(column: pa.ChunkedArray) -> Floats:
    lists = column.combine_chunks()
    return np.asarray(lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), -1), dtype=np.float32)
