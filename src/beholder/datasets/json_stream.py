"""Large JSON files read record by record: memory does not grow with the file; faults are reported by their byte."""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from beholder.core.errors import DataError
from beholder.core.read import HALF
from beholder.core.types import Entry

Record = Entry  # a JSON object as the file has it; readers check each value
CHUNK = 1 << 20
LONGEST_RECORD = 64 << 20
BLANKS = re.compile(r"[\ufeff\s]*")
EDGE = 16  # a parser that stumbles this near to the end of what was read may only lack the rest of a word


class _JsonStream:
    """A window that moves over a file: what has been read of it, and how far that was understood."""

    def __init__(self, path: Path, error: type[DataError] = DataError) -> None:
        self.path = path
        self.count = self.bytes_read = 0  # records of this list so far
        self._what, self._error, self._start = "record", error, 0
        self._decoder = json.JSONDecoder()

    def fault(self, reason: str) -> DataError:
        """What is wrong with the record that was given last."""
        return self._fault(f"{self._what} {self.count} {reason}", self._start)

    def number(self, record: Record, key: str) -> int:
        """A record's whole number from 0, of at most 63 bits."""
        value = record.get(key)
        if type(value) is not int or not 0 <= value < 1 << 63:
            raise self.fault(f"has {key} {value!r}, not a whole number" if key in record else f"has no '{key}'")
        return value

    def _open(self, file: BinaryIO) -> None:
        self._file, self._text, self._position, self._before = file, "", 0, 0
        self._bytes = codecs.getincrementaldecoder("utf-8")()

    def _items(self, ends: str, kind: str, item: str) -> Iterator[None]:
        """Once before every item of the list or object that begins here; its brackets and commas are taken."""
        self._take(ends[0], f"{kind} must begin with '{ends[0]}'")
        if self._next() != ends[1]:
            yield
            while self._next() == ",":
                self._position += 1
                yield
        self._take(ends[1], f"',' or '{ends[1]}' must follow {item}")

    def _records(self) -> Iterator[Record]:
        """The objects of the list that begins here."""
        self.count = 0
        for _ in self._items("[]", "a list of records", "a record"):
            self.count += 1
            self._require("{", f"{self._what} {self.count} is no object")
            yield self._value()

    def _value(self) -> Any:
        """The value that begins here. Half a character (such as `\\ud800` alone) is refused: no page could take it."""
        what = f"{self._what} {self.count}"
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
                if end == len(self._text) and self._text[-1] not in '}]"' and self._fill():
                    continue  # a number may go on in what was not read yet
                if HALF.search(self._text, self._position, end):
                    json.dumps(value, ensure_ascii=False).encode()
                self._start, self._position = self._position, end
                return value
            except json.JSONDecodeError as error:
                self._read_on(error, what)
            except UnicodeEncodeError:
                raise self._fault(f"{what} has half a character (a lone surrogate)") from None
            except RecursionError:
                raise self._fault(f"{what} is nested too deeply") from None
            except ValueError:  # Python reads no whole number of more than a few thousand digits
                raise self._fault(f"{what} has a number without end") from None

    def _read_on(self, error: json.JSONDecodeError, what: str) -> None:
        """Get more of a record that is not all here; raise if it is broken, or if there is no more."""
        if not error.msg.startswith("Unterminated string") and error.pos < len(self._text) - EDGE:
            raise self._fault(f"{what} is broken JSON ({error.msg})", error.pos) from None
        if len(self._text) - self._position > LONGEST_RECORD:
            raise self._fault(f"{what} does not end within {LONGEST_RECORD >> 20} MB")
        if not self._fill():
            raise self._cut_off() from None

    def _next(self) -> str:
        """The next character that is not blank, '' at the end of the file; it is not taken."""
        while True:
            blanks = BLANKS.match(self._text, self._position)
            assert blanks is not None
            self._position = blanks.end()
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._fill():
                return ""

    def _require(self, character: str, otherwise: str) -> None:
        if (following := self._next()) != character:
            raise self._fault(otherwise) if following else self._cut_off()

    def _take(self, character: str, otherwise: str) -> None:
        self._require(character, otherwise)
        self._position += 1

    def _end(self, what: str) -> None:
        if self._next():
            raise self._fault(f"something follows the end of the {what}")

    def _fill(self) -> bool:
        """Read the next chunk, as long again as what is waiting; False at the end of the file."""
        self._before += len(self._text[: self._position].encode())
        self._text, self._position = self._text[self._position :], 0
        chunk = self._file.read(max(CHUNK, len(self._text)))
        self.bytes_read += len(chunk)
        try:
            self._text += self._bytes.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            if not chunk:
                raise self._cut_off() from None
            byte = self._before + len(self._text.encode()) + error.start
            raise self._error(f"{self.path} is not UTF-8 text at byte {byte}.") from None
        return bool(chunk)

    def _cut_off(self) -> DataError:
        return self._error(
            f"{self.path} is cut off: it ends at byte {self.path.stat().st_size}, in or after {self._what} "
            f"{self.count}, and its list is not closed.\nWrite or copy it again."
        )

    def _fault(self, reason: str, position: int | None = None) -> DataError:
        before = self._text[: self._position if position is None else position]
        return self._error(f"{self.path}, byte {self._before + len(before.encode())}: {reason}.")


class JsonRecords(_JsonStream):
    """The objects of a file that holds one JSON list of objects."""

    def __iter__(self) -> Iterator[Record]:
        """One object after the other."""
        with self.path.open("rb") as file:
            self._open(file)
            yield from self._records()
            self._end("list")


class JsonTables(_JsonStream):
    """The lists of a file that holds one JSON object; each record comes with the key of its list."""

    def __iter__(self) -> Iterator[tuple[str, Record]]:
        """One object after the other; values that are no list are read over."""
        with self.path.open("rb") as file:
            self._open(file)
            for _ in self._items("{}", "an object", "a value"):
                self._what, self.count = "value", 0
                self._require('"', "a key must begin with '\"'")
                key = self._value()
                self._take(":", "':' must follow a key")
                self._what = f"{key} record"
                if (following := self._next()) == "[":
                    yield from ((key, record) for record in self._records())
                elif following:
                    self._value()
                else:
                    raise self._cut_off()
            self._end("object")
