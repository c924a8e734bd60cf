"""Count the captions that contain each of many terms, in one pass over every file."""

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
"""Captions between two updates of the progress bar."""


@dataclass
class Tally:
    """What one file contained."""

    path: str
    captions: int = 0
    empty: int = 0
    malformed: int = 0
    first_malformed: int = 0
    """Its number, counted from 1."""

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


def count_captions(files: Sequence[CaptionFile], mentions: Mentions, progress: Progress = silent) -> Counts:
    """Every caption of every file, once."""
    nothing = np.zeros(len(mentions.terms), np.int64)
    counts = Counts(nothing, nothing.copy())
    total = sum(file.size for file in files)
    before = shown = 0
    with progress("reading captions", max(1, total // MEGABYTE), 0) as advance:
        for file in files:
            counts.files.append(tally := Tally(str(file.path)))
            for number, caption in enumerate(file, start=1):
                _add(caption, number, tally, mentions, counts)
                if number % BETWEEN == 0 and (read := (before + file.bytes_read) // MEGABYTE) > shown:
                    advance(read - shown)
                    shown = read
            before += file.size
    if not counts.captions:
        raise DataError(
            f"No caption could be read in {', '.join(tally.path for tally in counts.files)}."
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
        matches = mentions.find(caption)
        for term in matches.apart:
            counts.apart[term] += 1
        for term in matches.inside:
            counts.inside[term] += 1
