"""Count the captions that contain each of many terms, in one pass over every file, on all cores or on Ray's workers.

Long files are counted by processes, since threads share one lock; short ones by threads. What is counted is kept in the
store, so that the same command goes on where it stopped.
"""

import hashlib
import json
import logging
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from beholder.core.digests import digest
from beholder.core.errors import DataError
from beholder.core.files import Place, write_whole
from beholder.core.progress import Progress, silent
from beholder.core.types import Entry
from beholder.scores.executor import Executor, Processes, usable_cores
from beholder.scores.ray_pool import RayOptions, ray_map
from beholder.studies.exposure.captions import MEGABYTE, CaptionFile, Part
from beholder.studies.exposure.mentions import MentionCounts, Mentions, Numbers

log = logging.getLogger(__name__)

SECONDS = 5.0  # between two writes of what is counted so far
VERSION = 2  # raised when captions are read or matched in another way
MOST_THREADS = 8  # each holds some parts of a file in memory
LONG = 256 * MEGABYTE  # bytes from which on worker processes pay: each takes about half a second to start


@dataclass
class Tally:
    """What one file contained."""

    path: str
    captions: int = 0
    empty: int = 0
    malformed: int = 0
    first_malformed: int = 0  # its number, counted from 1
    digest: str = ""  # of all captions that were read, in order

    @property
    def records(self) -> int:
        return self.captions + self.empty + self.malformed

    def add(self, part: "Tally") -> None:
        """Count the next part of the file."""
        if part.malformed and not self.malformed:
            self.first_malformed = self.records + part.first_malformed
        self.captions += part.captions
        self.empty += part.empty
        self.malformed += part.malformed
        self.digest = digest([self.digest, part.digest])

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
    inside: Numbers  # captions that contain a term only within a longer one; they are not counted in `apart`
    files: list[Tally]

    @property
    def captions(self) -> int:
        """Captions that were read and not empty."""
        return sum(tally.captions for tally in self.files)


def count_captions(
    files: Sequence[CaptionFile],
    mentions: Mentions,
    progress: Progress = silent,
    *,
    store: Place | None = None,
    ray: RayOptions | None = None,
) -> Counts:
    """Every caption of every file, once; counts are kept in the folder `store`, if there is one."""
    counted = [_Counted(file, mentions, store) for file in files]
    read = sum(each.read for each in counted)
    shown, total = read // MEGABYTE, max(1, sum(file.size for file in files) // MEGABYTE)
    with progress("reading captions", total, shown) as advance, closing(_seen_in(counted, mentions, ray)) as parts:
        try:
            for each, seen in parts:
                read += each.add(seen)
                if (now := read // MEGABYTE) > shown:
                    advance(now - shown)
                    shown = now
        finally:
            for each in counted:
                each.keep()
    apart, inside = (np.sum([getattr(each, name) for each in counted], axis=0) for name in ("apart", "inside"))
    counts = Counts(apart, inside, [each.tally for each in counted])
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
        self.file, self._written = file, time.monotonic()
        self._path = store and store / "exposure" / f"{digest([VERSION, file.stamp, file.column, terms])}.json"
        kept = self._kept()
        self.tally = Tally(file.path, **kept.get("tally", {}))
        nothing = [0] * len(terms)
        self.apart, self.inside = (np.array(kept.get(name, nothing), np.int64) for name in ("apart", "inside"))
        self.read: int = kept.get("read", 0)  # bytes of the file
        self.resume: int | None = kept.get("resume", 0)  # where reading goes on; None at the end
        self._state: Entry = {}  # what is not written yet

    def add(self, seen: "_Seen | None") -> int:
        """Count a part; None comes after the last one. How many more bytes of the file were read."""
        before, self.read = self.read, seen.read if seen else self.file.size
        if seen:
            self.tally.add(seen.tally)
            self.apart += seen.mentions.apart
            self.inside += seen.mentions.inside
        if not seen or seen.resume is not None:
            self.resume = seen.resume if seen else None
            tally = {name: value for name, value in asdict(self.tally).items() if name != "path"}
            numbers = {name: getattr(self, name).tolist() for name in ("apart", "inside")}
            self._state = {"read": self.read, "resume": self.resume, "tally": tally, **numbers}
            if not seen or time.monotonic() - self._written > SECONDS:
                self.keep()
        return self.read - before

    def _kept(self) -> Entry:
        """What an earlier run wrote; nothing where there is none, or where it is damaged."""
        if self._path is None or not self._path.is_file():
            return {}
        try:
            kept = dict(json.loads(self._path.read_bytes()))
            if kept.pop("digest", None) == digest(kept):
                return kept
        except (TypeError, ValueError):
            pass
        log.warning("What was counted of %s is damaged in the store. The file is counted again.", self.file.path)
        return {}

    def keep(self) -> None:
        """Write what is counted, up to the last place where reading can go on."""
        if self._path is not None and self._state:
            write_whole(self._path, json.dumps({**self._state, "digest": digest(self._state)}).encode(), private=True)
        self._state, self._written = {}, time.monotonic()

    def damaged(self, error: DataError) -> DataError:
        """The error with the place where reading ended."""
        if not (records := self.tally.records):
            return error
        kept = " What was counted is kept up to the last place where reading can go on."
        where = f"after record {records:,}, beyond byte {self.read:,} of {self.file.size:,}"
        return DataError(f"{error}\nThe damage is {where}.{kept if self._path and self.resume else ''}")


class _Seen(NamedTuple):
    """What a part of a file contained."""

    read: int
    resume: int | None
    tally: Tally
    mentions: MentionCounts


def _seen(part: Part, mentions: Mentions) -> _Seen:
    text, bad = part.text, part.malformed
    empty = sum(not line.decode().removeprefix("\ufeff").strip() for line in _perhaps_empty(text))
    first, content = bad[0] + 1 if bad else 0, hashlib.sha256(text).hexdigest()
    tally = Tally("", text.count(b"\n") - empty, empty, len(bad), first, content)
    return _Seen(part.read, part.resume, tally, mentions.count(text))


def _perhaps_empty(text: bytes) -> Iterator[bytes]:
    """The lines that begin neither with a letter nor with another character of ASCII that can be seen."""
    letters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    first = letters[starts]
    chosen = (first <= ord(" ")) | (first > 127)
    for start, stop in zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True):
        yield text[start:stop]


_Job = tuple[int, str, str | None, int, int | None]  # a file's number, address and column; from where to where
Done = tuple[int, bool, list[_Seen], DataError | None]  # a file's number, whether this is its end, and its parts


def _seen_in(
    counted: Sequence[_Counted], mentions: Mentions, ray: RayOptions | None
) -> Generator[tuple[_Counted, _Seen | None]]:
    """Every part that is not counted yet, in order; None after the last one of a file."""
    jobs = [
        (number, each.file.address, each.file.column, start, stop)
        for number, each in enumerate(counted)
        if each.resume is not None
        for start, stop in each.file.ranges(each.resume)
    ]
    left, done = sum(each.file.size - each.read for each in counted), partial(_done, mentions=mentions)
    if ray:
        yield from _elsewhere(counted, ray_map(done, jobs, ray))
    elif left >= LONG and len(jobs) > 1 < usable_cores():
        patience = 3600.0  # a packed file is read to its end
        with Processes(min(usable_cores(), len(jobs)), does="reads captions", patience=patience) as processes:
            yield from _elsewhere(counted, processes.map(done, jobs))
    else:
        with Executor(min(usable_cores(), MOST_THREADS)) as threads:
            for each in (each for each in counted if each.resume is not None):
                parts = each.file.parts(each.resume or 0)
                try:
                    for seen in threads.map(partial(_seen, mentions=mentions), parts, ahead=threads.count):
                        yield each, seen
                except DataError as error:
                    raise each.damaged(error) from error
                yield each, None


def _elsewhere(counted: Sequence[_Counted], results: Iterator[Done]) -> Iterator[tuple[_Counted, _Seen | None]]:
    """By workers that take a range of a file at a time."""
    for number, at_end, parts, error in results:
        yield from ((counted[number], seen) for seen in parts)
        if error:
            raise counted[number].damaged(error)
        if at_end:
            yield counted[number], None


def _done(job: _Job, mentions: Mentions) -> Done:
    """What the parts of a range contain, up to the first that cannot be read."""
    number, address, column, start, stop = job
    parts: list[_Seen] = []
    try:
        for part in CaptionFile(address, column).parts(start, stop):
            parts.append(_seen(part, mentions))
    except DataError as error:
        return number, False, parts, error
    return number, stop is None, parts, None
