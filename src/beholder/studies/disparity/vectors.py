"""Word vectors from a file: word2vec, binary or text, and GloVe.

The file is mapped into memory and read once, and only the requested words are kept: three million words of 300 numbers
(GoogleNews, 3.6 GB) take little memory. Vectors are scaled to length 1, so that a product is a cosine. A word that the
file lacks is absent; of a word that occurs twice, the first vector counts.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.errors import DataError, MissingData

Vector = npt.NDArray[np.float64]
PACKED = {b"\x1f\x8b": "gzip", b"PK": "zip", b"BZ": "bzip2", b"\xfd7": "xz"}
LONGEST_WORD = 10_000
LONGEST_LINE = 1 << 20


@dataclass(frozen=True)
class WordVectors:
    """Unit vectors of the requested words that the file has."""

    source: str
    """The file's name."""
    dimensions: int
    vectors: Mapping[str, Vector]

    def __contains__(self, word: str) -> bool:
        return word in self.vectors

    def __getitem__(self, word: str) -> Vector:
        return self.vectors[word]


class _Form(NamedTuple):
    """The form of a file, from its first lines."""

    start: int
    """The byte where the first word begins."""
    dimensions: int
    words: int | None
    """The number of words in the header; None without a header."""
    binary: bool


def read_vectors(path: Path, words: Iterable[str]) -> WordVectors:
    """The vectors of those words that the file has."""
    if not path.is_file():
        raise MissingData(f"There are no word vectors at {path}.\nExpected word2vec (binary or text) or GloVe.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty.")
    wanted = {word.encode(): word for word in words}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as bytes_:
        form = _form(bytes_, path)
        entries = _binary(bytes_, form, path) if form.binary else _text(bytes_, form, path)
        vectors: dict[str, Vector] = {}
        for word, raw in entries:
            if word in wanted and wanted[word] not in vectors:
                vectors[wanted[word]] = _unit(raw, form, wanted[word], path)
                if len(vectors) == len(wanted):
                    break
    return WordVectors(path.name, form.dimensions, vectors)


def _form(bytes_: mmap.mmap, path: Path) -> _Form:
    packing = next((name for magic, name in PACKED.items() if bytes_[: len(magic)] == magic), None)
    if packing:
        raise DataError(
            f"{path} is compressed ({packing}). Decompress it first: a compressed file cannot be mapped into memory."
        )
    header, start = _line(bytes_, 0, path)
    fields = header.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        words, dimensions = map(int, fields)
        return _Form(start, dimensions, words, not _is_text(bytes_, start, dimensions))
    if len(fields) > 2 and _numbers(fields[1:]) is not None:
        return _Form(0, len(fields) - 1, None, False)
    raise DataError(
        f"{path} starts neither like word2vec ('words dimensions') nor like GloVe ('word number number …')."
    )


def _is_text(bytes_: mmap.mmap, start: int, dimensions: int) -> bool:
    """Whether the first entry is written in digits."""
    end = bytes_.find(b"\n", start)
    line = bytes_[start : end if 0 <= end < start + LONGEST_LINE else start + LONGEST_LINE]
    fields = line.split()
    return len(fields) > dimensions and _numbers(fields[-dimensions:]) is not None


def _binary(bytes_: mmap.mmap, form: _Form, path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Word, blank, numbers; for as many words as the header says."""
    start, size = form.start, 4 * form.dimensions
    for number in range(1, (form.words or 0) + 1):
        blank = bytes_.find(b" ", start, start + LONGEST_WORD)
        if blank < 0 or blank + 1 + size > len(bytes_):
            raise DataError(
                f"{path} is cut off or broken at byte {start}, in word {number} of {form.words:,}.\nCopy it again."
            )
        yield bytes_[start:blank].lstrip(b"\n"), bytes_[blank + 1 : blank + 1 + size]
        start = blank + 1 + size


def _text(bytes_: mmap.mmap, form: _Form, path: Path) -> Iterator[tuple[bytes, bytes]]:
    """One word per line; the numbers are the last fields, because words of GloVe can contain blanks."""
    start, count = form.start, 0
    while start < len(bytes_):
        line, after = _line(bytes_, start, path)
        fields = line.rstrip().rsplit(b" ", form.dimensions)
        if line.strip():
            if len(fields) != form.dimensions + 1:
                raise DataError(f"{path}, byte {start}: a line has {len(fields) - 1} numbers, not {form.dimensions}.")
            yield fields[0], b" ".join(fields[1:])
            count += 1
        start = after
    if form.words is not None and count < form.words:
        raise DataError(f"{path} is cut off after {count:,} of {form.words:,} words. Copy it again.")


def _line(bytes_: mmap.mmap, start: int, path: Path) -> tuple[bytes, int]:
    """A line without its end, and the byte where the next one begins."""
    end = bytes_.find(b"\n", start, start + LONGEST_LINE)
    if end < 0 and len(bytes_) - start > LONGEST_LINE:
        raise DataError(f"{path}, byte {start}: the line is too long; this is not a file of word vectors.")
    return (bytes_[start:end], end + 1) if end >= 0 else (bytes_[start:], len(bytes_))


def _unit(raw: bytes, form: _Form, word: str, path: Path) -> Vector:
    vector = np.frombuffer(raw, dtype="<f4").astype(np.float64) if form.binary else _numbers(raw.split())
    if vector is None or not np.isfinite(vector).all():
        raise DataError(f"{path}: the vector of {word!r} is not a list of finite numbers.")
    length = float(np.linalg.norm(vector))
    if not length:
        raise DataError(f"{path}: the vector of {word!r} is all zeros: it has no direction.")
    return np.asarray(vector / length, dtype=np.float64)


def _numbers(fields: list[bytes]) -> Vector | None:
    try:
        return np.array([float(field) for field in fields])
    except ValueError:
        return None
