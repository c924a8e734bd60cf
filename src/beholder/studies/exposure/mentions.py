"""Mentions: which of many names and words captions contain.

Text is compared word by word. Capitals, accents and anything between words do not matter (`José Muñoz-Díaz's` contains
`jose munoz diaz`); every letter and digit does. A name inside a longer one of its kind (`Ronaldo` in `Cristiano
Ronaldo`) is kept apart from a name on its own.

Captions come by the ten thousand. They are folded together into words between single blanks, and one automaton (Aho
and Corasick's, which polars has) looks for all terms at once. Only a caption with a term that contains another one is
read word by word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import DataError

_BLANK, _LINE = ord(" "), ord("\n")
_LETTERS = bytes(
    code if code == _LINE or code > 127 else ord(chr(code).lower()) if chr(code).isalnum() else _BLANK
    for code in range(256)
)
"""For each byte of UTF-8: letters and digits in lower case, line ends, and blanks for what else is ASCII."""
Words = tuple[str, ...]
Numbers = npt.NDArray[np.int64]


def words_of(text: str) -> list[str]:
    """The words of a text without capitals and accents. Letters with a stroke (ł, ø) are separate letters.

    >>> words_of("Lupita Nyong’o's ÉTÉ, 2nd_take")
    ['lupita', 'nyong', 'o', 's', 'ete', '2nd', 'take']
    """
    return folded(text.encode()).decode().split()


def folded(text: bytes) -> bytes:
    """A text without capitals and accents: words, with one blank before and after each, and line ends.

    >>> folded("Élan,  vital\\nO'Neil\\n".encode())
    b'\\n elan vital \\n o neil \\n '
    """
    text = b"\n%b " % (text if text.isascii() else _without_accents(b" %b " % text))
    letters = np.frombuffer(text.translate(_LETTERS).replace(b"\n", b" \n "), np.uint8)
    keep = letters != _BLANK
    keep[1:] |= keep[:-1].copy()  # a blank that follows no other
    return letters[keep].tobytes()  # type: ignore[no-any-return]


def _without_accents(data: bytes) -> bytes:
    """The text with every run of characters beyond ASCII folded."""
    beyond = np.frombuffer(data, np.uint8) > 127
    edges = np.flatnonzero(beyond[1:] != beyond[:-1]) + 1  # the text begins and ends with a blank
    pieces: list[bytes] = []
    before = 0
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        pieces += (data[before:start], _folded_run(data[start:stop]))
        before = stop
    return b"".join((*pieces, data[before:]))


@lru_cache(1 << 16)
def _folded_run(run: bytes) -> bytes:
    """Characters beyond ASCII without capitals and accents; each is folded by itself, whatever stands beside it."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", run.decode()).casefold())
    letters = (letter for letter in apart if not unicodedata.combining(letter))
    return "".join(letter if letter.isalnum() else " " for letter in letters).encode()


class Term(NamedTuple):
    """Something to look for; a term can hide only shorter terms of its own kind."""

    kind: str
    text: str


class Matches(NamedTuple):
    """Indices of the terms that a caption contains."""

    apart: set[int]
    inside: set[int]
    """Those that occur only within a longer term of their kind."""


class MentionCounts(NamedTuple):
    """For each term, how many captions contain it; a caption counts once, however often it contains the term."""

    apart: Numbers
    inside: Numbers
    """Captions that contain it only within a longer term of its kind; they are not counted in `apart`."""


def _lines_with(text: bytes, patterns: list[str]) -> list[bytes]:
    """The lines that contain any of the patterns."""
    places = pl.Series([text]).cast(pl.String).str.find_many(patterns, overlapping=True).item().to_numpy()
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE)
    lines = np.unique(np.searchsorted(ends, places))
    return [text[start + 1 : stop] for start, stop in zip(ends[lines - 1].tolist(), ends[lines].tolist(), strict=True)]


class Mentions:
    """What is looked for."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)
        split = [tuple(words_of(term.text)) for term in self.terms]
        for term, words in zip(self.terms, split, strict=True):
            if not words:
                raise DataError(f"The {term.kind} {term.text!r} contains no letter or digit to look for.")
        self._starting: dict[str, list[tuple[int, Words]]] = {}
        for index, words in enumerate(split):
            self._starting.setdefault(words[0], []).append((index, words))
        self._patterns = list(dict.fromkeys(f" {' '.join(words)} " for words in split))
        place = {pattern: number for number, pattern in enumerate(self._patterns)}
        self._pattern_of = np.array([place[f" {' '.join(words)} "] for words in split], dtype=int)
        self._outer = [self._patterns[number] for number in sorted(self._containing())]

    def _containing(self) -> set[int]:
        """Patterns that contain a shorter one of a term of the same kind."""
        by_kind: dict[str, set[int]] = {}
        for term, number in zip(self.terms, self._pattern_of.tolist(), strict=True):
            by_kind.setdefault(term.kind, set()).add(number)
        outer: set[int] = set()
        for numbers in by_kind.values():
            own = [self._patterns[number] for number in numbers]
            inside = pl.Series(own).str.extract_many(own, overlapping=True).list.n_unique()
            outer |= {number for number, many in zip(numbers, inside, strict=True) if many > 1}
        return outer

    def count(self, text: bytes) -> MentionCounts:
        """Captions, one on each line of a text in UTF-8, that contain each term."""
        text = folded(text)
        rows = pl.DataFrame({"row": pl.Series(_lines_with(text, self._patterns), dtype=pl.Binary).cast(pl.String)})
        rows = rows.with_columns(pattern=pl.col("row").str.extract_many(self._patterns, overlapping=True).list.unique())
        hard = pl.col("pattern").list.set_intersection(self._outer).list.len() > 0
        simple = rows.filter(~hard)["pattern"].explode().drop_nulls().cast(pl.Enum(self._patterns)).to_physical()
        apart = np.bincount(simple.to_numpy(), minlength=len(self._patterns))[self._pattern_of].astype(np.int64)
        inside = np.zeros_like(apart)
        for row in rows.filter(hard)["row"]:
            matches = self._find(row.split())
            apart[list(matches.apart)] += 1
            inside[list(matches.inside)] += 1
        return MentionCounts(apart, inside)

    def _find(self, text: list[str]) -> Matches:
        """The terms among the words of a caption."""
        spans = [
            (start, start + len(words), index)
            for start, word in enumerate(text)
            for index, words in self._starting.get(word, ())
            if tuple(text[start : start + len(words)]) == words
        ]
        apart = {span[2] for span in spans if not self._within_another(span, spans)}
        return Matches(apart, {index for _, _, index in spans} - apart)

    def _within_another(self, span: tuple[int, int, int], spans: list[tuple[int, int, int]]) -> bool:
        start, end, index = span
        kind = self.terms[index].kind
        return any(
            first <= start and end <= last and last - first > end - start and self.terms[other].kind == kind
            for first, last, other in spans
        )
