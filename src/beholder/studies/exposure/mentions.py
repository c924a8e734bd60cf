"""Mentions: which of many names and words captions contain, word by word, without capitals and accents.

A name inside a longer one of its kind (`Ronaldo` in `Cristiano Ronaldo`) is kept apart. All words of a block are looked
up at once: most begin no term, as a table of bits tells from their first eight bytes. The others are hashed with the
words after them, as long as a term may go on: twice as fast as Aho and Corasick's automaton, which polars has.
"""

import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import DataError
from beholder.datasets.dataset import Dataset
from beholder.studies.apa.prompts import CATEGORIES, OCCUPATIONS, OFFICES, SPORTS

_BLANK, _LINE = ord(" "), ord("\n")
_LETTERS = bytes(  # for each byte of UTF-8: lower case, line ends, and blanks for what else is ASCII
    code if code == _LINE or code > 127 else ord(chr(code).lower()) if chr(code).isalnum() else _BLANK
    for code in range(256)
)
_ASCII, _FIRST_OF_SEVERAL, _GONE = 127, 0xC0, 0xFF  # the last of ASCII, the least of longer ones, and never in UTF-8
_WITH_BYTE = (0, 0, 0x800, 0x10000)  # the least character that has a first, second, third and fourth byte
_UNKNOWN, _LONGER = 0, 1
_FOLDS = np.zeros(sys.maxunicode + 1, np.uint32)  # for each character met beyond ASCII, its fold in up to four bytes
BLOCK = 1 << 18  # bytes at a time: with all that is made of them they fit into the processor's cache
_EIGHT = 8
_MASKS = np.array([(1 << 8 * length) - 1 for length in range(_EIGHT + 1)], np.uint64)  # keep so many bytes of eight
_MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(48)  # multiplicative hashing: the upper 16 bits are the place
Words = tuple[str, ...]
Numbers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]


def words_of(text: str) -> list[str]:
    """The words of a text without capitals and accents. Letters with a stroke (ł, ø) are separate letters."""
    return folded(text.encode()).decode().split()


def folded(text: bytes) -> bytes:
    """A text without capitals and accents: words, line ends, and blanks for anything else."""
    return text.translate(_LETTERS) if text.isascii() else _without_accents(text).translate(_LETTERS, bytes([_GONE]))


def _without_accents(text: bytes) -> bytes:
    """The text with every character beyond ASCII folded; where it becomes shorter, the rest is bytes that are gone."""
    letters = np.frombuffer(text, np.uint8).copy()
    codes = np.frombuffer(letters[letters > _ASCII].tobytes().decode().encode("utf-32-le"), "<u4")
    for code in np.unique(codes[_FOLDS[codes] == _UNKNOWN]).tolist():
        character = chr(code).encode()
        fold = _folded(character)
        longer = len(fold) > len(character)
        _FOLDS[code] = _LONGER if longer else int.from_bytes(fold.ljust(4, bytes([_GONE])), "little")
    places, folds = np.flatnonzero(letters >= _FIRST_OF_SEVERAL), _FOLDS[codes]
    if (too_long := folds == _LONGER).any():
        return _without_accents(_with_folded(text, places[too_long], codes[too_long]))
    for byte, least in enumerate(_WITH_BYTE):
        chosen = codes >= least
        letters[places[chosen] + byte] = folds[chosen] >> 8 * byte & 0xFF
    return letters.tobytes()


def _with_folded(text: bytes, starts: Numbers, codes: npt.NDArray[np.uint32]) -> bytes:
    """The text with the characters that begin at `starts` folded, neighbours together."""
    stops = starts + np.searchsorted(_WITH_BYTE, codes, side="right")
    apart = starts[1:] != stops[:-1]
    runs = zip(starts[np.append(True, apart)].tolist(), stops[np.append(apart, True)].tolist(), strict=True)
    pieces, before = list[bytes](), 0
    for start, stop in runs:
        pieces += (text[before:start], _folded(text[start:stop]))
        before = stop
    return b"".join((*pieces, text[before:]))


@lru_cache(1 << 16)
def _folded(text: bytes) -> bytes:
    """Characters without capitals and accents; each is folded by itself, whatever stands beside it."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text.decode()).casefold())
    letters = (letter for letter in apart if not unicodedata.combining(letter))
    return "".join(letter if letter.isalnum() else " " for letter in letters).encode()


class Term(NamedTuple):
    """Something to look for; a term can hide only shorter terms of its own kind."""

    kind: str
    text: str


class MentionCounts(NamedTuple):
    """For each term, how many captions contain it; a caption counts once, however often it contains the term."""

    apart: Numbers
    inside: Numbers  # captions that contain it only within a longer term of its kind; not counted in `apart`


class _Text:
    """The words of a folded text, as numbers."""

    def __init__(self, text: bytes, longest: int = 0) -> None:
        """Words of up to `longest` bytes can be hashed."""
        letters = np.frombuffer(b" %b%b" % (text, b" " * (longest + _EIGHT)), np.uint8)
        inside = letters > _BLANK
        edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
        self._line_ends, self._longest = np.flatnonzero(letters == _LINE), longest
        self._eights = np.ndarray((len(letters) - _EIGHT + 1,), "<u8", letters, strides=(1,))
        self._starts = edges[::2]
        self._lengths = edges[1::2] - self._starts
        self.firsts = self._eights[self._starts] & _MASKS.take(self._lengths, mode="clip")  # bytes, up to eight

    def hashes(self, words: Numbers, before: Keys) -> Keys:
        """A number for each word, of all its bytes and of the number `before` it."""
        lengths, starts = self._lengths[words], self._starts[words]
        made = _scattered(before ^ self.firsts[words]) + lengths.view(np.uint64)
        for at in range(_EIGHT, self._longest, _EIGHT):
            long = np.flatnonzero(lengths > at)
            rest = self._eights[starts[long] + at] & _MASKS.take(lengths[long] - at, mode="clip")
            made[long] = _scattered(made[long] ^ rest)
        return made

    def lines(self, words: Numbers) -> Numbers:
        """The number of the line in which each word stands."""
        return np.searchsorted(self._line_ends, self._starts[words])


def _scattered(numbers: Keys) -> Keys:
    """Numbers of which every bit depends on all bits of the given ones (splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ numbers >> np.uint64(shift)) * np.uint64(factor)
    return numbers ^ numbers >> np.uint64(31)


class _Hits(NamedTuple):
    """Where patterns were found."""

    lines: Numbers
    words: Numbers  # the number of the first word, in the whole text
    patterns: Numbers


class _Patterns:
    """Different sequences of words, which are looked for together: words are followed while they may begin one."""

    def __init__(self, patterns: Sequence[Words]) -> None:
        self.sizes = np.array([len(words) for words in patterns])
        self._longest = max(len(word.encode()) for words in patterns for word in words)
        text = _Text(" ".join(word for words in patterns for word in words).encode(), self._longest)
        first, hashes = np.cumsum(self.sizes) - self.sizes, np.zeros(len(patterns), np.uint64)
        self._begins = _table(text.firsts[first] * _MIX)
        self._steps = []  # for each number of words: what may go on, what may end there, and what does, sorted
        for depth in range(self.sizes.max()):
            there = np.flatnonzero(self.sizes > depth)
            hashes[there] = text.hashes(first[there] + depth, hashes[there])
            ends = there[self.sizes[there] == depth + 1]
            ends = ends[np.argsort(hashes[ends])]
            self._steps.append((_table(hashes[self.sizes > depth + 1]), _table(hashes[ends]), hashes[ends], ends))

    def find(self, folded_text: bytes) -> _Hits:
        """Every place of every pattern within a line."""
        text = _Text(folded_text, self._longest)
        words = np.flatnonzero(self._begins[text.firsts * _MIX >> _SHIFT])
        hashes, hits, found = np.zeros(len(words), np.uint64), [], []
        for depth, (going_on, ending, keys, patterns) in enumerate(self._steps):
            inside = words + depth < len(text.firsts)
            words, hashes = words[inside], text.hashes(words[inside] + depth, hashes[inside])
            likely = np.flatnonzero(ending[hashes >> _SHIFT])
            places = np.minimum(np.searchsorted(keys, hashes[likely]), len(keys) - 1)
            right = keys[places] == hashes[likely]
            hits.append(words[likely[right]])
            found.append(patterns[places[right]])
            on = going_on[hashes >> _SHIFT]
            words, hashes = words[on], hashes[on]
        starts, which = np.concatenate(hits), np.concatenate(found)
        lines = text.lines(starts)
        chosen = lines == text.lines(starts + self.sizes[which] - 1)
        return _Hits(lines[chosen], starts[chosen], which[chosen])


def _table(hashes: Keys) -> npt.NDArray[np.bool_]:
    table = np.zeros(1 << 64 - int(_SHIFT), np.bool_)
    table[hashes >> _SHIFT] = True
    return table


class Mentions:
    """What is looked for."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)
        split = [tuple(words_of(term.text)) for term in self.terms]
        for term, words in zip(self.terms, split, strict=True):
            if not words:
                raise DataError(f"The {term.kind} {term.text!r} contains no letter or digit to look for.")
        by_words: dict[Words, list[int]] = {}
        for index, words in enumerate(split):
            by_words.setdefault(words, []).append(index)
        self._patterns, self._terms_of = _Patterns(list(by_words)), list(by_words.values())
        numbers = {words: number for number, words in enumerate(by_words)}
        self._pattern_of = np.array([numbers[words] for words in split])
        known = {(term.kind, words) for term, words in zip(self.terms, split, strict=True)}
        self._outer = np.array(  # for each pattern, whether it contains a shorter one of its kind
            [
                any((self.terms[index].kind, inner) in known for index in indices for inner in sequences_within(words))
                for words, indices in by_words.items()
            ]
        )

    def __reduce__(self) -> tuple[type["Mentions"], tuple[tuple[Term, ...]]]:
        """To another process go the terms alone: what is made of them is ten times as large."""
        return Mentions, (self.terms,)

    def count(self, text: bytes) -> MentionCounts:
        """Captions, one on each line of a text in UTF-8, that contain each term."""
        apart, inside = (np.zeros(len(self.terms), np.int64) for _ in range(2))
        for block in _blocks(text):
            hits = self._patterns.find(folded(block))
            nested = np.isin(hits.lines, hits.lines[self._outer[hits.patterns]])
            known = len(self._terms_of)
            once = np.unique(hits.lines[~nested] * known + hits.patterns[~nested]) % known
            apart += np.bincount(once, minlength=known)[self._pattern_of]
            for spans in self._spans(hits, nested):
                alone = {span[2] for span in spans if not self._within_another(span, spans)}
                apart[list(alone)] += 1
                inside[list({index for _, _, index in spans} - alone)] += 1
        return MentionCounts(apart, inside)

    def _spans(self, hits: _Hits, chosen: npt.NDArray[np.bool_]) -> Iterator[list[tuple[int, int, int]]]:
        """For each line with chosen hits, where its terms begin and end, and which they are."""
        ends = hits.words + self._patterns.sizes[hits.patterns]
        columns = (each[chosen].tolist() for each in (hits.lines, hits.words, ends, hits.patterns))
        for _, rows in groupby(sorted(zip(*columns, strict=True)), key=lambda row: row[0]):
            yield [(start, end, index) for _, start, end, pattern in rows for index in self._terms_of[pattern]]

    def _within_another(self, span: tuple[int, int, int], spans: list[tuple[int, int, int]]) -> bool:
        start, end, index = span
        kind = self.terms[index].kind
        return any(
            first <= start and end <= last and last - first > end - start and self.terms[other].kind == kind
            for first, last, other in spans
        )


def sequences_within(words: Words) -> Iterator[Words]:
    """Every shorter sequence of words in this one."""
    spans = combinations(range(len(words) + 1), 2)
    return (words[start:end] for start, end in spans if end - start < len(words))


def _blocks(text: bytes) -> Iterator[bytes]:
    """Whole lines, so many that they are just longer than a block."""
    start = 0
    while start < len(text):
        stop = text.find(b"\n", start + BLOCK) + 1 or len(text)
        yield text[start:stop]
        start = stop


# Who and what is counted

NAME = "name"
LEVEL_WORDS = {  # specialties of actors are awards in whole clauses, which no caption contains: not counted
    "category": CATEGORIES,
    "occupation": OCCUPATIONS,
    "specialty": (*OFFICES, *(player.lower() for player in SPORTS.values())),
}
WORD_TERMS = [Term(level, word) for level, words in LEVEL_WORDS.items() for word in words]
SHARED, WITHIN, ONE_WORD = ("shared with another person", "part of a longer name", "one word, which may mean others")


def people_table(dataset: Dataset) -> pl.DataFrame:
    """A row for every person of every branch: `branch, name, gender`, and why the name is ambiguous, if it is."""
    # A person with two photographs in one branch is one person; one name in two branches may be two.
    people = dataset.table.select("branch", "name", "gender").unique(["branch", "name"], maintain_order=True)
    split = [tuple(words_of(name)) for name in people[NAME]]
    often = Counter(split)
    within = {inner for words in often for inner in sequences_within(words)}
    why = []  # captions that contain the name may mean someone else
    for words in split:
        reasons = {SHARED: often[words] > 1, WITHIN: words in within, ONE_WORD: len(words) == 1}
        why.append("; ".join(reason for reason, holds in reasons.items() if holds) or None)
    return people.with_columns(ambiguous=pl.Series(why, dtype=pl.String))
