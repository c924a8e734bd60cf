"""Count the captions that contain each of many terms, in one pass over every file, on all cores.

What is counted is kept in the store: the same command goes on where it stopped, in the middle of a plain file or after
a row group of a Parquet file, and does not read a file again that it has read to its end.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from beholder.core.digests import digest
from beholder.core.errors import DataError
from beholder.core.files import Place, write_whole
from beholder.core.progress import Progress, silent
from beholder.studies.exposure.captions import CaptionFile, Part
from beholder.studies.exposure.mentions import MentionCounts, Mentions, Numbers

MEGABYTE = 1 << 20
SECONDS = 5.0
"""Between two writes of what is counted so far."""
VERSION = 1
"""Raised when captions are read or matched in another way."""
MOST_THREADS = 8
"""Each holds some parts of a file in memory."""


@dataclass
class Tally:
    """What one file contained."""

    path: str
    captions: int = 0
    empty: int = 0
    malformed: int = 0
    first_malformed: int = 0
    """Its number, counted from 1."""
    digest: str = ""
    """Of all captions that were read, in order."""

    @property
    def remarks(self) -> list[str]:
        """What was not counted."""
        lines = [f"{self.path}: empty captions: {self.empty:,}"] if self.empty else []
        if self.malformed:
            lines.append(
                f"{self.path}: malformed records: {self.malformed:,}, the first is record {self.first_malformed:,}; "
                f"captions read: {self.captions:,}"
            )
        return lines


@dataclass
class Counts:
    """Captions that contain each term; a caption counts once for a term, however often it contains it."""

    apart: Numbers
    inside: Numbers
    """Captions that contain a term only within a longer one; they are not counted in `apart`."""
    files: list[Tally] = field(default_factory=list)

    @property
    def captions(self) -> int:
        """Captions that were read and not empty."""
        return sum(tally.captions for tally in self.files)


def count_captions(
    files: Sequence[CaptionFile], mentions: Mentions, progress: Progress = silent, *, store: Place | None = None
) -> Counts:
    """Every caption of every file, once; counts are kept in the folder `store`, if there is one."""
    nothing = np.zeros(len(mentions.terms), np.int64)
    counts, before = Counts(nothing, nothing.copy()), 0
    with progress("reading captions", max(1, sum(file.size for file in files) // MEGABYTE), 0) as advance:
        shown = 0

        def show(read: int) -> None:
            nonlocal shown
            if (now := (before + read) // MEGABYTE) > shown:
                advance(now - shown)
                shown = now

        for file in files:
            counted = _Counted(file, mentions, store)
            counted.read_on(mentions, show)
            counts.apart += counted.apart
            counts.inside += counted.inside
            counts.files.append(counted.tally)
            before += file.size
            show(0)
    if not counts.captions:
        raise DataError(
            f"No caption could be read in {', '.join(tally.path for tally in counts.files)}."
            + "".join(f"\n{line}" for tally in counts.files for line in tally.remarks)
        )
    return counts


class _Counted:
    """What is counted of one file so far."""

    def __init__(self, file: CaptionFile, mentions: Mentions, store: Place | None) -> None:
        terms = [list(term) for term in mentions.terms]
        self._file, self._written = file, time.monotonic()
        self._path = store and store / "exposure" / f"{digest([VERSION, file.stamp, file.column, terms])}.json"
        kept = self._kept()
        self.tally = Tally(file.path, **kept.get("tally", {}))
        nothing = [0] * len(terms)
        self.apart, self.inside = (np.array(kept.get(name, nothing), np.int64) for name in ("apart", "inside"))
        self._resume, self._complete = int(kept.get("resume", 0)), bool(kept.get("complete", False))

    def read_on(self, mentions: Mentions, show: Callable[[int], None]) -> None:
        """Count the rest of the file."""
        if self._complete:
            return
        for part, seen in _in_order(self._file.parts(self._resume), lambda part: _seen(part, mentions)):
            self._add(seen)
            show(part.read)
            if part.resume is not None:
                self._resume = part.resume
                if time.monotonic() - self._written > SECONDS:
                    self._keep()
        self._complete = True
        self._keep()

    def _add(self, seen: _Seen) -> None:
        tally, records = self.tally, self.tally.captions + self.tally.empty + self.tally.malformed
        if seen.malformed and not tally.malformed:
            tally.first_malformed = records + seen.first_malformed + 1
        tally.captions += seen.captions
        tally.empty += seen.empty
        tally.malformed += seen.malformed
        tally.digest = digest([tally.digest, seen.digest])
        self.apart += seen.mentions.apart
        self.inside += seen.mentions.inside

    def _kept(self) -> dict[str, Any]:
        """What an earlier run wrote; nothing where there is none, or where it cannot be read."""
        try:
            return dict(json.loads(self._path.read_text())) if self._path else {}
        except (OSError, ValueError):
            return {}

    def _keep(self) -> None:
        self._written = time.monotonic()
        if self._path is None:
            return
        numbers = {name: getattr(self, name).tolist() for name in ("apart", "inside")}
        tally = {name: value for name, value in asdict(self.tally).items() if name != "path"}
        state = {"resume": self._resume, "complete": self._complete, "tally": tally, **numbers}
        write_whole(self._path, json.dumps(state).encode(), private=True)


class _Seen(NamedTuple):
    """What a part of a file contained."""

    captions: int
    empty: int
    malformed: int
    first_malformed: int
    """Its place in the part."""
    digest: str
    mentions: MentionCounts


def _seen(part: Part, mentions: Mentions) -> _Seen:
    text = part.text
    empty = sum(not line.decode().removeprefix("\ufeff").strip() for line in _perhaps_empty(text))
    return _Seen(
        text.count(b"\n") - empty,
        empty,
        len(part.malformed),
        part.malformed[0] if part.malformed else 0,
        hashlib.sha256(text).hexdigest(),
        mentions.count(text),
    )


def _perhaps_empty(text: bytes) -> Iterator[bytes]:
    """The lines that begin neither with a letter nor with another character of ASCII that can be seen."""
    letters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    first = letters[starts]
    chosen = (first <= ord(" ")) | (first > 127)
    for start, stop in zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True):
        yield text[start:stop]


def _in_order(parts: Iterator[Part], work: Callable[[Part], _Seen]) -> Iterator[tuple[Part, _Seen]]:
    """Each part with what is in it, in order; the next ones are read and worked on meanwhile, by a thread per core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = min(cores, MOST_THREADS)
    waiting: deque[tuple[Part, Future[_Seen]]] = deque()
    with ThreadPoolExecutor(cores) as pool:
        for part in parts:
            waiting.append((part, pool.submit(work, part)))
            if len(waiting) > cores:
                first, future = waiting.popleft()
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()
