"""Mentions: which of many names and words a caption contains, in one pass over its words.

Text is compared word by word. Capitals, accents and anything between words do not matter (`José Muñoz-Díaz's` contains
`jose munoz diaz`); every letter and digit does. A name inside a longer one of its kind (`Ronaldo` in `Cristiano
Ronaldo`) is kept apart from a name on its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from beholder.core.errors import DataError

_WORD = re.compile(r"[^\W_]+")
_ASCII = str.maketrans({chr(code): chr(code).lower() if chr(code).isalnum() else " " for code in range(128)})
Words = tuple[str, ...]


def words_of(text: str) -> list[str]:
    """The words of a text without capitals and accents. Letters with a stroke (ł, ø) are separate letters.

    >>> words_of("Lupita Nyong’o's ÉTÉ, 2nd_take")
    ['lupita', 'nyong', 'o', 's', 'ete', '2nd', 'take']
    """
    if text.isascii():
        return text.translate(_ASCII).split()
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return _WORD.findall("".join(letter for letter in apart if not unicodedata.combining(letter)))


class Term(NamedTuple):
    """Something to look for; a term can hide only shorter terms of its own kind."""

    kind: str
    text: str


class Matches(NamedTuple):
    """Indices of the terms that a caption contains."""

    apart: set[int]
    inside: set[int]
    """Those that occur only within a longer term of their kind."""


NOTHING = Matches(set(), set())


class Mentions:
    """An index of terms by their first word: most words of a caption start no term and cost one lookup."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)
        self._starting: dict[str, list[tuple[int, Words]]] = {}
        for index, term in enumerate(self.terms):
            words = tuple(words_of(term.text))
            if not words:
                raise DataError(f"The {term.kind} {term.text!r} contains no letter or digit to look for.")
            self._starting.setdefault(words[0], []).append((index, words))
        self._first_words = frozenset(self._starting)

    def find(self, caption: str) -> Matches:
        """The terms that a caption contains."""
        text = words_of(caption)
        if self._first_words.isdisjoint(text):
            return NOTHING
        spans = [
            (start, start + len(words), index)
            for start, word in enumerate(text)
            for index, words in self._starting.get(word, ())
            if tuple(text[start : start + len(words)]) == words
        ]
        if len(spans) < 2:
            return Matches({index for _, _, index in spans}, set())
        apart = {span[2] for span in spans if not self._within_another(span, spans)}
        return Matches(apart, {index for _, _, index in spans} - apart)

    def _within_another(self, span: tuple[int, int, int], spans: list[tuple[int, int, int]]) -> bool:
        start, end, index = span
        kind = self.terms[index].kind
        return any(
            first <= start and end <= last and last - first > end - start and self.terms[other].kind == kind
            for first, last, other in spans
        )
