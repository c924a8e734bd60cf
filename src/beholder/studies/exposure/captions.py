"""Caption files, read part by part: memory does not grow with the file, and reading can go on where it stopped.

Text has a caption a line; tables and JSONL have a column; `.json` is COCO's. A record that cannot be read is null, so
that it can be counted. Parts are cut at the same places wherever reading begins.
"""

import csv
import glob
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from beholder.core.digests import file_stamp
from beholder.core.errors import DataError, MissingData, masked
from beholder.core.files import RemotePath, file_system, place, remote_errors
from beholder.core.read import delimiter_of
from beholder.datasets.content import is_remote, open_binary
from beholder.datasets.json_stream import JsonTables

COLUMNS = ("caption", "TEXT", "text")
MEGABYTE = 1 << 20
LONGEST_LINE = MEGABYTE  # a longer line is not a caption and is never held in memory as a whole
CHUNK = 4 << 20  # bytes that are read at a time: up to the next multiple of this, and on to the end of that line
RANGE = 16  # so many chunks, or as large a part of a Parquet file, can be given away to be read elsewhere
ROWS, RECORDS = 1 << 16, 1 << 14  # rows of a Parquet file, records of a CSV or JSON file that are read at a time
PACKED = (".gz", ".zst")


class Part(NamedTuple):
    """Some captions of a file, one after the other."""

    text: bytes  # the captions in UTF-8, each followed by a line end; a line end within a caption is a blank
    malformed: list[int]  # the places, among all records, of those that cannot be read; they are not in the text
    read: int  # bytes of the file that were read so far
    resume: int | None = None  # where reading can go on: a byte of the text, or a number of row groups; None: nowhere

    @property
    def captions(self) -> pl.Series:
        """One by one, null for a record that cannot be read."""
        lines = pa.array([self.text[:-1]] if self.text else [], pa.large_binary())
        captions = pl.Series(pl.from_arrow(_split(lines, "\n").flatten()))
        if b"\r" in self.text:
            captions = captions.str.strip_chars_end("\r\n")
        if b"\xef\xbb\xbf" in self.text:
            captions = captions.str.strip_prefix("\ufeff")
        if not self.malformed:
            return captions
        whole = captions.to_list()
        for index in self.malformed:
            whole.insert(index, None)
        return pl.Series(whole, dtype=pl.String)


def part_of(captions: pl.Series, read: int, resume: int | None = None) -> Part:
    """Captions as a part of a file; null for a record that cannot be read."""
    known = captions.drop_nulls().str.replace_all("\n", " ", literal=True)
    text = bytes(known.str.join("\n").cast(pl.Binary).item()) + b"\n" if len(known) else b""
    return Part(text, captions.is_null().arg_true().to_list(), read, resume)


def caption_files(addresses: Iterable[str], column: str | None = None) -> "list[CaptionFile]":
    """The files of paths and URIs; a URI may be a pattern (`s3://bucket/part-*.parquet`)."""
    paths: list[str] = []
    for address in addresses:
        found = [address]
        if is_remote(address) and glob.has_magic(address):
            with remote_errors(address, "listed"):
                system, pattern = file_system(address)
                found = [system.unstrip_protocol(path) for path in sorted(system.glob(pattern))]
        if not found:
            raise MissingData(f"There is no caption file like {masked(address)}.")
        paths += found
    return [CaptionFile(path, column) for path in paths]


class CaptionFile:
    """The captions of one file."""

    def __init__(self, path: Path | str, column: str | None = None) -> None:
        self._place, self.column = place(path), column
        self.path = str(self._place)  # without credentials
        self.address = self._place.uri if isinstance(self._place, RemotePath) else self.path
        if not self._place.is_file():
            raise MissingData(f"There is no caption file at {self.path}.")
        self.size = self._place.stat().st_size
        remote = self._place.stat().stamp if isinstance(self._place, RemotePath) else None
        self.stamp = f"{self.path} {remote}" if remote else file_stamp(self.path)  # changes when the file does
        *_, before, last = ("", "", *(ending.lower() for ending in self._place.suffixes))
        self._ending, self._packed = (before, last) if last in PACKED else (last, "")
        if self._packed and self._ending in (".parquet", ".json"):
            raise DataError(f"{self.path}: packed {self._ending} files cannot be read. Unpack it first.")
        if isinstance(self._place, RemotePath) and self._ending == ".json":
            raise DataError(f"{self.path}: .json files cannot be read from a URI. Copy it here first.")

    def parts(self, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """All captions, or those after `start`, which is the `resume` of an earlier part, or one of `ranges`."""
        readers = {".tsv": self._tsv, ".jsonl": self._jsonl, ".parquet": self._parquet}
        whole = {".csv": self._csv, ".json": self._coco}
        with self._reading():
            if self._ending in whole:
                yield from whole[self._ending]()
            else:
                yield from readers.get(self._ending, self._lines)(start, stop)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Damage and a failing network are reported with the file's name."""
        with remote_errors(self._place, "read") if isinstance(self._place, RemotePath) else nullcontext():
            try:
                yield
            except (EOFError, OSError, UnicodeDecodeError, zlib.error, pa.ArrowException) as error:
                advice = "The file may be incomplete: copy it again."
                raise DataError(f"{self.path} cannot be read to its end: {error}.\n{advice}") from error

    def ranges(self, start: int = 0) -> Iterator[tuple[int, int | None]]:
        """From where to where `parts` can be read by themselves; together they are all parts after `start`."""
        if self._packed or self._ending in (".csv", ".json"):
            yield start, None
            return
        last, step = self.size, RANGE * CHUNK
        if self._ending == ".parquet":
            with self._reading(), self._open() as raw:
                last = pq.ParquetFile(raw).metadata.num_row_groups
            step = max(1, step * last // max(1, self.size))
        for border in range((start // step + 1) * step, last, step):
            yield start, border
            start = border
        yield start, None

    def _open(self) -> io.BufferedReader:
        raw = open_binary(self.address, block=CHUNK)
        return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw, MEGABYTE)

    def _unpacked(self, raw: io.BufferedReader) -> AbstractContextManager[Any]:
        if self._packed == ".gz":
            return gzip.GzipFile(fileobj=raw)
        if self._packed == ".zst":
            return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"), 1 << 17)
        return nullcontext(raw)  # it is closed by whoever opened it

    # Lines

    def _lines(self, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """The lines that begin from byte `start` on and before `stop`; null for one that is too long or not UTF-8."""
        with self._open() as raw, self._unpacked(raw) as file:
            at = _after_line_end(file, start) if start else 0
            while (stop is None or at < stop) and (text := file.read(CHUNK - at % CHUNK)):
                at += len(text)
                if not text.endswith(b"\n"):
                    rest, length = _rest_of_line(file)
                    text, at = text + rest, at + length
                yield Part(*_readable(text), raw.tell(), at)

    def _tsv(self, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """One column. Quotation marks are text: an unclosed one must not swallow the rest of the file."""
        with self._open() as raw, self._unpacked(raw) as file:
            line = file.read(LONGEST_LINE).partition(b"\n")[0]
        first = Part(*_readable(line + b"\n"), 0).captions[0]
        header = first.split("\t") if first else []
        index, named = self._place_in(header)
        skip = int(named and not start)
        for part in self._lines(start, stop):
            lines = part.captions[skip:]
            lines, skip = lines.filter(lines.is_null() | (lines != "")), 0
            cells = pl.Series(pl.from_arrow(_split(lines.to_arrow(), "\t")))
            column = pl.when(cells.list.len() == len(header)).then(cells.list.get(index, null_on_oob=True))
            yield part_of(pl.select(column).to_series(), part.read, part.resume)

    def _jsonl(self, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        for part in self._lines(start, stop):
            lines = (line for line in part.captions if line is None or line.strip())
            captions = _strings(_json_caption(line, self.column) for line in lines)
            yield part_of(captions, part.read, part.resume)

    # Records

    def _csv(self) -> Iterator[Part]:
        rows = self._csv_rows(read := [0])
        header = next(rows, None) or []
        index, named = self._place_in(header)
        rows = rows if named else chain([header], rows)
        rows = (row for row in rows if row not in ([], [""]))
        return _in_parts((row[index] if row and len(row) == len(header) else None for row in rows), lambda: read[0])

    def _csv_rows(self, read: list[int]) -> Iterator[list[str] | None]:
        """Null for a row that cannot be read."""

        def lines() -> Iterator[str]:
            for part in self._lines():
                read[0] = part.read
                yield from (f"{line}\n" if line is not None else "\0\n" for line in part.captions)

        first = next(texts := lines(), "")
        delimiter = "," if self.column and self.column.isdecimal() else delimiter_of(first)  # without a header, a comma
        rows = csv.reader(chain([first], texts), delimiter=delimiter)
        while True:
            try:
                row = next(rows)
                yield None if any("\0" in cell for cell in row) else row
            except StopIteration:
                return
            except csv.Error:
                yield None

    def _coco(self) -> Iterator[Part]:
        tables, name = JsonTables(Path(self.address)), self.column or "caption"
        captions = (_text(record.get(name), absent=None) for key, record in tables if key == "annotations")
        return _in_parts(captions, lambda: tables.bytes_read)

    def _parquet(self, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """Row group by row group; of a large one only some pages are in memory."""
        with self._open() as raw:
            file = pq.ParquetFile(raw, buffer_size=CHUNK)
            name, groups = self._chosen(file.schema_arrow.names), file.metadata.num_row_groups
            for group in range(start, min(groups, groups if stop is None else stop)):
                read, last = self.size * (group + 1) // groups, None
                for batch in file.iter_batches(ROWS, row_groups=[group], columns=[name]):
                    if last is not None:
                        yield part_of(last, read)
                    batch.validate(full=True)  # bytes that are no UTF-8 may stand in a column of texts
                    last = pl.Series(pl.from_arrow(batch.column(0)))
                    if last.dtype not in (pl.String, pl.Categorical):  # what is no text cannot be read
                        last = pl.Series([None] * len(last), dtype=pl.String).set(last.is_null(), "")
                    else:
                        last = last.cast(pl.String).fill_null("")
                if last is not None:
                    yield part_of(last, read, group + 1)

    # Columns

    def _place_in(self, header: list[str]) -> tuple[int, bool]:
        """Where the column is: by its name in the header (True), or by its number in a file without one (False)."""
        if not (self.column and self.column.isdecimal() and self.column not in header):
            return header.index(self._chosen(header)), True
        if not 0 < int(self.column) <= len(header):
            raise DataError(f"{self.path} has no column {self.column}. Its columns are numbered 1 to {len(header)}.")
        return int(self.column) - 1, False

    def _chosen(self, names: list[str]) -> str:
        wanted = (self.column,) if self.column else COLUMNS
        for name in wanted:
            if name in names:
                return name
        raise DataError(
            f"{self.path} has no column {' or '.join(map(repr, wanted))}. It has: "
            f"{', '.join(name[:40] for name in names[:8]) or 'nothing'}.\n"
            "Name the column with the captions: --column NAME, or --column 1 if the file has no header."
        )


def _after_line_end(file: Any, start: int) -> int:
    """Move to the first line that begins at this byte or later; packed files are unpacked up to it. Where that is."""
    if file.seekable():
        file.seek(start - 1)
    else:
        for at in range(0, start - 1, CHUNK):
            file.read(min(CHUNK, start - 1 - at))
    return start - 1 + _rest_of_line(file)[1]


def _rest_of_line(file: Any) -> tuple[bytes, int]:
    """The rest of a line with a line end, cut where it is too long, and how many bytes it has in the file."""
    rest = piece = file.readline(LONGEST_LINE)
    length = len(rest)
    while piece and not piece.endswith(b"\n"):
        piece = file.readline(LONGEST_LINE)
        length += len(piece)
    return rest if rest.endswith(b"\n") else rest + b"\n", length


def _readable(lines: bytes) -> tuple[bytes, list[int]]:
    """The lines of a text without those that are too long or not UTF-8, and the places of the latter."""
    block = max(1, LONGEST_LINE // 2)  # a line that is too long has no line end in one of these blocks
    short = all(b"\n" in lines[start : start + block] for start in range(0, len(lines) - block, block))
    if short and _is_text(lines):
        return lines, []
    whole = lines[:-1].split(b"\n")
    good = [len(line) < LONGEST_LINE and _is_text(line) for line in whole]
    return b"".join(line + b"\n" for line in compress(whole, good)), [at for at, fine in enumerate(good) if not fine]


def _is_text(data: bytes) -> bool:
    try:
        return data.isascii() or data.decode() is not None
    except UnicodeDecodeError:
        return False


def _split(texts: Any, separator: str) -> Any:
    """The pieces of each text: four times as fast as what polars has; raises where a text is not UTF-8."""
    return pc.split_pattern(texts.cast(pa.large_string()), separator)


def _in_parts(captions: Iterator[str | None], read: Callable[[], int]) -> Iterator[Part]:
    """Captions that come one by one, as parts; `read` says how many bytes were read so far."""
    while some := list(islice(captions, RECORDS)):
        yield part_of(_strings(some), read())


def _strings(captions: Iterable[str | None]) -> pl.Series:
    """Half a character, as JSON may have it, is no letter: it becomes one that stands for what cannot be read."""
    captions = list(captions)
    try:
        return pl.Series(captions, dtype=pl.String)
    except UnicodeEncodeError:
        return pl.Series([text and text.encode("utf-8", "replace").decode() for text in captions], dtype=pl.String)


def _json_caption(line: str | None, column: str | None) -> str | None:
    try:
        record = json.loads(line or "")
    except (ValueError, RecursionError):
        return None
    names = [name for name in ((column,) if column else COLUMNS) if isinstance(record, dict) and name in record]
    return _text(record[names[0]]) if names else None


def _text(value: object, absent: str | None = "") -> str | None:
    """A caption; null is an empty one, and anything else that is not text cannot be read."""
    return value if isinstance(value, str) else absent if value is None else None
