"""Count the captions that say each of many terms: one pass over every file, whatever the number of terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from beholder.core.errors import DataError
from beholder.core.progress import Progress, silent
from beholder.studies.exposure.captions import CaptionFile
from beholder.studies.exposure.mentions import Mentions

Numbers = npt.NDArray[np.int64]
MEGABYTE = 1 << 20
BETWEEN = 4096
"""Captions between two moves of the bar."""


@dataclass
class Tally:
    """What a file held."""

    path: str
    captions: int = 0
    empty: int = 0
    malformed: int = 0
    first_malformed: int = 0
    """Which record, counted from 1."""

    @property
    def remarks(self) -> list[str]:
        """What was not counted."""
        said = [f"{self.path}: empty captions: {self.empty:,}"] if self.empty else []
        if self.malformed:
            said.append(
                f"{self.path}: malformed records: {self.malformed:,}, the first is record {self.first_malformed:,}; "
                f"captions read: {self.captions:,}"
            )
        return said


@dataclass
class Counts:
    """Captions that say each term; a caption counts once for a term, however often it says it."""

    apart: Numbers
    inside: Numbers
    """Captions that say a term only within a longer one; they are not among `apart`."""
    files: list[Tally] = field(default_factory=list)

    @property
    def captions(self) -> int:
        """All that were read and not empty."""
        return sum(tally.captions for tally in self.files)


def count_captions(files: Sequence[CaptionFile], mentions: Mentions, progress: Progress = silent) -> Counts:
    """Every caption of every file, once."""
    nothing = np.zeros(len(mentions.terms), np.int64)
    counts = Counts(nothing, nothing.copy())
    total = sum(file.size for file in files)
    before = told = 0
    with progress("reading captions", max(1, total // MEGABYTE), 0) as advance:
        for file in files:
            counts.files.append(tally := Tally(str(file.path)))
            for number, caption in enumerate(file, start=1):
                _add(caption, number, tally, mentions, counts)
                if number % BETWEEN == 0 and (read := (before + file.place) // MEGABYTE) > told:
                    advance(read - told)
                    told = read
            before += file.size
    if not counts.captions:
        raise DataError(
            f"There is no caption to read in {', '.join(tally.path for tally in counts.files)}."
            + "".join(f"\n{line}" for tally in counts.files for line in tally.remarks)
        )
    return counts


def _add(caption: str | None, number: int, tally: Tally, mentions: Mentions, counts: Counts) -> None:
    if caption is None:
        tally.malformed += 1
        tally.first_malformed = tally.first_malformed or number
    elif not caption.strip():
        tally.empty += 1
    else:
        tally.captions += 1
        apart, inside = mentions.found(caption)
        for place in apart:
            counts.apart[place] += 1
        for place in inside:
            counts.inside[place] += 1
