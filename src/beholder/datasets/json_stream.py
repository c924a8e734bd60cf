"""Large JSON files read record by record: memory does not grow with the file, and faults are told by their byte.

    JsonRecords      one list of objects: detections, Visual Genome's objects
    JsonTables       one object whose values are lists of objects: COCO's annotations

Nothing is ever held whole; a gigabyte costs as much memory as a kilobyte.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from beholder.core.errors import DataError

Record = dict[str, Any]  # a JSON object as the file has it; readers check each value
CHUNK = 1 << 20
LONGEST_RECORD = 64 << 20
BLANKS = re.compile(r"[\ufeff\s]*")
HALF = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that is one of two halves of a character
EDGE = 16  # a parser that stumbles this near to the end of what was read may only lack the rest of a word


class _JsonStream:
    """A window that moves over a file: what has been read of it, and how far that was understood."""

    def __init__(self, path: Path, error: type[DataError] = DataError) -> None:
        self.path = path
        self.count = 0
        """Records given so far, of this list."""
        self.bytes_read = 0
        self._what, self._error = "record", error
        self._decoder = json.JSONDecoder()
        self._start = 0

    def fault(self, reason: str) -> DataError:
        """What is wrong with the record that was given last."""
        return self._fault(self._start, f"{self._what} {self.count} {reason}")

    def _open(self, file: BinaryIO) -> None:
        self._file, self._text, self._position, self._before = file, "", 0, 0
        self._bytes = codecs.getincrementaldecoder("utf-8")()

    def _records(self) -> Iterator[Record]:
        """The objects of the list that begins here; its brackets are taken."""
        self.count = 0
        self._take("[", "a list of records must begin with '['")
        if self._next() != "]":
            while True:
                yield self._record()
                if self._next() != ",":
                    break
                self._position += 1
        self._take("]", "',' or ']' must follow a record")

    def _record(self) -> Record:
        self.count += 1
        if (character := self._next()) != "{":
            raise (
                self._fault(self._position, f"{self._what} {self.count} is no object") if character else self._cut_off()
            )
        record: Record = self._value()
        return record

    def _value(self) -> Any:
        """The value that begins here."""
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except json.JSONDecodeError as error:
                self._read_on(error)
            except RecursionError:
                raise self._fault(self._position, f"{self._what} {self.count} is nested too deeply") from None
            except ValueError:  # Python reads no whole number of more than a few thousand digits
                raise self._fault(self._position, f"{self._what} {self.count} has a number without end") from None
            else:
                if end == len(self._text) and self._text[-1] not in '}]"' and self._fill():
                    continue  # a number may go on in what was not read yet
                self._require_text(value, end)
                self._start, self._position = self._position, end
                return value

    def _require_text(self, value: object, end: int) -> None:
        """Raise for half a character (an escape such as `\\ud800` alone), which no file or page could take."""
        if not HALF.search(self._text, self._position, end):
            return
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise self._fault(
                self._position, f"{self._what} {self.count} has half a character (a lone surrogate)"
            ) from None

    def _read_on(self, error: json.JSONDecodeError) -> None:
        """Get more of a record that is not all here; raise if it is broken, or if there is no more."""
        cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - EDGE
        if not cut:
            raise self._fault(error.pos, f"{self._what} {self.count} is broken JSON ({error.msg})") from None
        if len(self._text) - self._position > LONGEST_RECORD:
            raise self._fault(
                self._position, f"{self._what} {self.count} does not end within {LONGEST_RECORD >> 20} MB"
            )
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

    def _take(self, character: str, otherwise: str) -> None:
        following = self._next()
        if not following:
            raise self._cut_off()
        if following != character:
            raise self._fault(self._position, otherwise)
        self._position += 1

    def _end(self, what: str) -> None:
        if self._next():
            raise self._fault(self._position, f"something follows the end of the {what}")

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
        end = self.path.stat().st_size
        return self._error(
            f"{self.path} is cut off: it ends at byte {end}, in or after {self._what} {self.count}, and its list is "
            "not closed.\nWrite or copy it again."
        )

    def _fault(self, position: int, reason: str) -> DataError:
        byte = self._before + len(self._text[:position].encode())
        return self._error(f"{self.path}, byte {byte}: {reason}.")


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
            self._take("{", "an object must begin with '{'")
            if self._next() != "}":
                while True:
                    yield from self._list()
                    if self._next() != ",":
                        break
                    self._position += 1
            self._take("}", "',' or '}' must follow a value")
            self._end("object")

    def _list(self) -> Iterator[tuple[str, Record]]:
        self._what, self.count = "value", 0
        if (character := self._next()) != '"':
            raise self._fault(self._position, "a key must begin with '\"'") if character else self._cut_off()
        key = self._value()
        self._take(":", "':' must follow a key")
        self._what = f"{key} record"
        if self._next() == "[":
            yield from ((key, record) for record in self._records())
        elif self._next():
            self._value()
        else:
            raise self._cut_off()
