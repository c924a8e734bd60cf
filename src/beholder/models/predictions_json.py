"""A JSON list read record by record: memory does not grow with the file, and faults are told by their byte.

The whole list is never held; a gigabyte of detections costs as much memory as a kilobyte.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from beholder.errors import BadScores

CHUNK = 1 << 20
LONGEST_RECORD = 64 << 20
BLANKS = re.compile(r"[\ufeff\s]*")
EDGE = 16
"""A parser that stumbles this near to the end of what was read may only lack the rest of a word."""


class JsonRecords:
    """The objects of a file that holds one JSON list of objects."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._decoder = json.JSONDecoder()
        self._start = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """One object after the other."""
        with self.path.open("rb") as self._file:
            self._text, self._place, self._before = "", 0, 0
            self._bytes = codecs.getincrementaldecoder("utf-8")()
            self._take("[", "a list of records must begin with '['")
            if self._next() != "]":
                yield from self._records()
            self._take("]", "',' or ']' must follow a record")
            if self._next():
                raise self._fault(self._place, "something follows the end of the list")

    def fault(self, reason: str) -> BadScores:
        """What is wrong with the record that was given last."""
        return self._fault(self._start, f"record {self.count} {reason}")

    def _records(self) -> Iterator[dict[str, Any]]:
        while True:
            yield self._record()
            if self._next() != ",":
                return
            self._place += 1

    def _record(self) -> dict[str, Any]:
        self.count += 1
        if (found := self._next()) != "{":
            raise self._fault(self._place, f"record {self.count} is no object") if found else self._cut_off()
        while True:
            try:
                record, end = self._decoder.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                self._read_on(error)
            except RecursionError:
                raise self._fault(self._place, f"record {self.count} is nested too deeply") from None
            else:
                self._start, self._place = self._place, end
                return record  # type: ignore[no-any-return]

    def _read_on(self, error: json.JSONDecodeError) -> None:
        """Get more of a record that is not all here; raise if it is broken, or if there is no more."""
        cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - EDGE
        if not cut:
            raise self._fault(error.pos, f"record {self.count} is broken JSON ({error.msg})") from None
        if len(self._text) - self._place > LONGEST_RECORD:
            raise self._fault(
                self._place, f"record {self.count} does not end within {LONGEST_RECORD >> 20} MB"
            )
        if not self._fill():
            raise self._cut_off() from None

    def _next(self) -> str:
        """The next character that is not blank, '' at the end of the file; it is not taken."""
        while True:
            found = BLANKS.match(self._text, self._place)
            assert found is not None
            self._place = found.end()
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._fill():
                return ""

    def _take(self, character: str, otherwise: str) -> None:
        found = self._next()
        if not found:
            raise self._cut_off()
        if found != character:
            raise self._fault(self._place, otherwise)
        self._place += 1

    def _fill(self) -> bool:
        """Read the next chunk, as long again as what is waiting; False at the end of the file."""
        self._before += len(self._text[: self._place].encode())
        self._text, self._place = self._text[self._place :], 0
        chunk = self._file.read(max(CHUNK, len(self._text)))
        try:
            self._text += self._bytes.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            if not chunk:
                raise self._cut_off() from None
            byte = self._before + len(self._text.encode()) + error.start
            raise BadScores(f"{self.path} is not UTF-8 text at byte {byte}.") from None
        return bool(chunk)

    def _cut_off(self) -> BadScores:
        end = self.path.stat().st_size
        return BadScores(
            f"{self.path} is cut off: it ends at byte {end}, in or after record {self.count}, and its list is not "
            "closed.\nWrite or copy it again."
        )

    def _fault(self, place: int, reason: str) -> BadScores:
        byte = self._before + len(self._text[:place].encode())
        return BadScores(f"{self.path}, byte {byte}: {reason}.")
