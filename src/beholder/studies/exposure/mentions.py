"""Mentions: which of many names and words a caption says, in one pass over its words.

Text is compared word by word: capitals, accents and whatever stands between words do not matter (`José Muñoz-Díaz's`
says `jose munoz diaz`), every letter and digit does. A name inside a longer one of its kind (`Ronaldo` in `Cristiano
Ronaldo`) is told apart from a name that stands by itself.
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


def words_said(text: str) -> list[str]:
    """The words of a text without capitals and accents; letters with a stroke (ł, ø) are letters of their own.

    >>> words_said("Lupita Nyong’o's ÉTÉ, 2nd_take")
    ['lupita', 'nyong', 'o', 's', 'ete', '2nd', 'take']
    """
    if text.isascii():
        return text.translate(_ASCII).split()
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return _WORD.findall("".join(letter for letter in apart if not unicodedata.combining(letter)))


class Term(NamedTuple):
    """Something to look for; only terms of one kind can stand in each other's way."""

    kind: str
    text: str


class Found(NamedTuple):
    """Places of terms, each once however often it is said."""

    apart: set[int]
    inside: set[int]
    """Said only within a longer term of their kind."""


NOTHING = Found(set(), set())


class Mentions:
    """An index of terms by their first words: most words of a caption begin none, and cost one look."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)
        self._starting: dict[str, list[tuple[int, Words]]] = {}
        for place, term in enumerate(self.terms):
            words = tuple(words_said(term.text))
            if not words:
                raise DataError(f"The {term.kind} {term.text!r} has no letter or digit to look for.")
            self._starting.setdefault(words[0], []).append((place, words))
        self._first_words = frozenset(self._starting)

    def found(self, caption: str) -> Found:
        """The terms that a caption says."""
        said = words_said(caption)
        if self._first_words.isdisjoint(said):
            return NOTHING
        spans = [
            (start, start + len(words), place)
            for start, word in enumerate(said)
            for place, words in self._starting.get(word, ())
            if tuple(said[start : start + len(words)]) == words
        ]
        if len(spans) < 2:
            return Found({place for _, _, place in spans}, set())
        apart = {span[2] for span in spans if not self._within_another(span, spans)}
        return Found(apart, {place for _, _, place in spans} - apart)

    def _within_another(self, span: tuple[int, int, int], spans: list[tuple[int, int, int]]) -> bool:
        start, end, place = span
        kind = self.terms[place].kind
        return any(
            first <= start and end <= last and last - first > end - start and self.terms[other].kind == kind
            for first, last, other in spans
        )
