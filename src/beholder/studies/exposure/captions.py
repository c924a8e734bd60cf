"""Caption files, read record by record: memory does not grow with the file.

    .txt (or any other ending)   one caption per line
    .tsv .csv .jsonl .parquet    one column; without `column`: caption, TEXT or text
    .json                        COCO's captions

All but Parquet and `.json` may be packed as `.gz`. A record that cannot be read is None, so that it can be counted.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from beholder.core.errors import DataError, MissingData
from beholder.datasets.json_stream import JsonTables

COLUMNS = ("caption", "TEXT", "text")
LONGEST_LINE = 1 << 20
"""Bytes; a longer line is not a caption and is never held in memory as a whole."""
ROWS = 8192
"""Rows of a Parquet file that are read at a time."""
Captions = Iterator[str | None]


class CaptionFile:
    """The captions of one file."""

    def __init__(self, path: Path, column: str | None = None) -> None:
        if not path.is_file():
            raise MissingData(f"There is no caption file at {path}.")
        self.path, self.size = path, path.stat().st_size
        self._column = column
        self._read: Callable[[], int] = int
        endings = [ending.lower() for ending in path.suffixes[-2:]]
        self._packed = endings[-1:] == [".gz"]
        self._ending = next(iter(endings[-2:-1] if self._packed else endings[-1:]), "")
        if self._packed and self._ending in (".parquet", ".json"):
            raise DataError(f"{path}: packed {self._ending} files cannot be read. Unpack it first: gunzip {path}")

    def __iter__(self) -> Captions:
        """Every caption; None for a record that cannot be read."""
        readers = {".tsv": self._tsv, ".csv": self._csv, ".jsonl": self._jsonl, ".json": self._coco}
        try:
            yield from {**readers, ".parquet": self._parquet}.get(self._ending, self._lines)()
        except (EOFError, gzip.BadGzipFile, pa.ArrowException) as error:
            raise DataError(
                f"{self.path} cannot be read to its end: {error}.\nThe file may be incomplete: copy it again."
            ) from error

    @property
    def bytes_read(self) -> int:
        """How many of its bytes were read so far; valid while its captions are read."""
        return self._read()

    def _lines(self) -> Captions:
        """Lines without line ends; None for one that is too long or not UTF-8."""
        with self.path.open("rb") as raw, self._unpacked(raw) as file:
            self._read = raw.tell
            while line := file.readline(LONGEST_LINE):
                whole = len(line) < LONGEST_LINE or line.endswith(b"\n")
                while not whole and (rest := file.readline(LONGEST_LINE)):
                    whole = rest.endswith(b"\n")
                    line = b"\xff"  # is not UTF-8, so it counts as malformed
                try:
                    yield line.decode("utf-8-sig" if line.startswith(b"\xef\xbb\xbf") else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    yield None

    def _unpacked(self, raw: BinaryIO) -> AbstractContextManager[BinaryIO | gzip.GzipFile]:
        return gzip.GzipFile(fileobj=raw) if self._packed else nullcontext(raw)

    def _tsv(self) -> Captions:
        """Quotation marks are text: an unclosed one must not swallow the rest of the file."""
        return self._column_of(None if line is None else line.split("\t") for line in self._lines())

    def _csv(self) -> Captions:
        return self._column_of(self._csv_rows())

    def _csv_rows(self) -> Iterator[list[str] | None]:
        rows = csv.reader(f"{line}\n" if line is not None else "\0\n" for line in self._lines())
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error:
                yield None
            else:
                yield None if any("\0" in cell for cell in row) else row

    def _column_of(self, rows: Iterator[list[str] | None]) -> Captions:
        """One column: by its name in the header, or by its number where the file has no header."""
        header = next(rows, None) or []
        number = self._column is not None and self._column.isdigit() and self._column not in header
        index = int(self._column or 0) - 1 if number else header.index(self._chosen(header))
        if not 0 <= index < len(header):
            raise DataError(f"{self.path} has no column {self._column}. Its columns are numbered 1 to {len(header)}.")
        if number:
            yield header[index]
        for row in rows:
            if row not in ([], [""]):
                yield None if row is None or len(row) != len(header) else row[index]

    def _chosen(self, names: list[str]) -> str:
        wanted = (self._column,) if self._column else COLUMNS
        for name in wanted:
            if name in names:
                return name
        raise DataError(
            f"{self.path} has no column {' or '.join(map(repr, wanted))}. It has: "
            f"{', '.join(name[:40] for name in names[:8]) or 'nothing'}.\n"
            "Name the column with the captions: --column NAME, or --column 1 if the file has no header."
        )

    def _jsonl(self) -> Captions:
        for line in self._lines():
            if line is None or line.strip():
                record = _record(line)
                names = [name for name in ((self._column,) if self._column else COLUMNS) if name in record]
                yield _text(record[names[0]]) if names else None

    def _coco(self) -> Captions:
        tables = JsonTables(self.path)
        self._read = lambda: tables.bytes_read
        for key, record in tables:
            if key == "annotations":
                yield _text(record.get(self._column or "caption"), absent=None)

    def _parquet(self) -> Captions:
        file = pq.ParquetFile(self.path)
        name, rows = self._chosen(file.schema_arrow.names), 0
        self._read = lambda: self.size * rows // file.metadata.num_rows
        for batch in file.iter_batches(ROWS, columns=[name]):
            yield from map(_text, batch.column(0).to_pylist())
            rows += batch.num_rows


def _record(line: str | None) -> dict[str, Any]:
    try:
        record = json.loads(line or "")
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _text(value: object, absent: str | None = "") -> str | None:
    """A caption; null is an empty one, and anything else that is not text cannot be read."""
    return value if isinstance(value, str) else absent if value is None else None
