"""The reference models' tokens: byte-level BPE in CLIP's format, learnt from our own captions.

Any text can be written in it: words of the captions are one token or a few, everything else falls to bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

Word = tuple[str, ...]
START, END = "<|startoftext|>", "<|endoftext|>"
WORD_END = "</w>"


def byte_letters() -> list[str]:
    """One printable letter per byte, in the order of GPT-2's and CLIP's byte alphabet."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {b: chr(256 + index) for index, b in enumerate(hidden)}
    return [letters[byte] for byte in [*printable, *hidden]]


def split_word(word: str) -> Word:
    """A word as its letters, the last one marked as the end."""
    return (*word[:-1], word[-1] + WORD_END)


def merge_pair(word: Word, pair: tuple[str, str]) -> Word:
    """The word with every occurrence of the pair joined."""
    merged: list[str] = []
    for symbol in word:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return tuple(merged)


def count_pairs(words: Counter[Word]) -> Counter[tuple[str, str]]:
    """How often each pair of neighbouring symbols occurs."""
    pairs: Counter[tuple[str, str]] = Counter()
    for word, times in words.items():
        for pair in pairwise(word):
            pairs[pair] += times
    return pairs


def learn_merges(texts: Iterable[str], limit: int) -> list[tuple[str, str]]:
    """Merge the most frequent pair again and again; ties go to the alphabetically first."""
    words = Counter(
        split_word(word) for text in texts for word in text.lower().replace("-", " ").replace(".", " ").split()
    )
    merges: list[tuple[str, str]] = []
    while len(merges) < limit and (pairs := count_pairs(words)):
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = Counter({merge_pair(word, best): times for word, times in words.items()})
    return merges


def vocabulary(merges: list[tuple[str, str]]) -> dict[str, int]:
    """Token numbers: bytes, bytes that end a word, merges, start and end."""
    letters = byte_letters()
    tokens = [*letters, *(letter + WORD_END for letter in letters), *("".join(pair) for pair in merges), START, END]
    return {token: number for number, token in enumerate(tokens)}
