"""How many tokens a model reads about a picture, shared and one by one.

With a checkpoint's own processor at hand, the tokens are those that the engine lays out; without it they are
estimated: a token for each word and sign, and what a chat's form adds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from beholder.models.contrastive.embedding import batches
from beholder.models.generative.prompt_tree import PromptTree, prompt_tree

RUN = 64
"""Tokens whose attention is computed together (`tree_attention.RUN`)."""
BEFORE, AFTER = 15, 5
"""Tokens of a chat's form before the picture and after the question: an estimate."""
TEXTS = 256
"""Texts that are handed to a text tower together."""
PICTURE = -1
FORM = -2
Size = tuple[int, int]


class Reading(NamedTuple):
    """What a language model reads about one picture."""

    picture: float
    """Tokens of the picture."""
    trunk: float
    """Words that all questions begin with."""
    branches: float
    """Words that some questions share."""
    leaves: float
    """Words of one question alone."""
    one_by_one: float
    """Tokens of all questions, each with the picture."""
    in_batches: float
    """The same with the padding of batches."""
    pairs: float
    """Pairs of tokens whose attention is computed."""
    questions: int
    shared: bool
    """Whether the questions can share words; else only the image tower's work is."""

    @property
    def read(self) -> float:
        """Tokens that go through the language model."""
        return self.picture + self.text if self.shared else self.in_batches

    @property
    def text(self) -> float:
        return self.trunk + self.branches + self.leaves

    @property
    def text_one_by_one(self) -> float:
        return self.one_by_one - self.picture * self.questions


def reading(sequences: Sequence[Sequence[int]], picture: int, *, shared: bool, at_once: int = 1) -> Reading:
    """Of questions as tokens, the picture's among them; where they cannot share, so many are padded together."""
    tree = prompt_tree(sequences)
    ends = np.sort(tree.last_tokens)
    below = np.searchsorted(ends, tree.end) - np.searchsorted(ends, np.arange(tree.size))
    leaves = int((below[tree.trunk :] == 1).sum())
    lengths = sorted(len(sequence) for sequence in sequences)
    whole = [(len(part), part[-1]) for part in batches(lengths, at_once)]
    return Reading(
        picture,
        tree.trunk - picture,
        tree.size - tree.trunk - leaves,
        leaves,
        sum(lengths),
        sum(count * length for count, length in whole),
        computed_pairs(tree) if shared else sum(count * length**2 for count, length in whole),
        len(sequences),
        shared,
    )


def computed_pairs(tree: PromptTree) -> float:
    """Pairs of tokens in attention over a tree: its trunk, then runs of tokens with what stands above them."""
    starts = np.arange(tree.trunk, tree.size, RUN)
    width = int(tree.depth[starts].max()) if len(starts) else 0
    return float(tree.trunk**2 + len(starts) * RUN * (width + RUN))


def mean(readings: Sequence[Reading]) -> Reading:
    """Of several pictures."""
    columns = [float(np.mean(column)) for column in zip(*(one[:7] for one in readings), strict=True)]
    picture, trunk, branches, leaves, one_by_one, in_batches, pairs = columns
    first = readings[0]
    return Reading(picture, trunk, branches, leaves, one_by_one, in_batches, pairs, first.questions, first.shared)


# Without the checkpoint's files


def estimated(questions: Sequence[str], picture: int, *, shared: bool, at_once: int = 1) -> Reading:
    """By words and signs."""
    numbers: dict[str, int] = {}
    form = [FORM] * BEFORE + [PICTURE] * picture
    sequences = [
        [*form, *(numbers.setdefault(word, len(numbers)) for word in words(question)), *[FORM] * AFTER]
        for question in questions
    ]
    return reading(sequences, picture, shared=shared, at_once=at_once)


def words(text: str) -> list[str]:
    """Words and signs.

    >>> words("Is she kind?")
    ['Is', 'she', 'kind', '?']
    """
    return re.findall(r"\w+|[^\w\s]", text)


# With them


def text_lengths(texts: Sequence[str], folder: Path | None) -> tuple[list[int], bool]:
    """Tokens of each text, and whether they are the checkpoint's own tokenizer's."""
    path = folder / "tokenizer.json" if folder else None
    if path and path.is_file():
        try:
            from tokenizers import Tokenizer  # an optional dependency

            tokenizer = Tokenizer.from_file(str(path))
            tokenizer.no_padding()
            tokenizer.no_truncation()
            return [len(one.ids) for one in tokenizer.encode_batch(list(texts))], True
        except ImportError:
            pass
    return [len(words(text)) + 2 for text in texts], False


def padded(lengths: Sequence[int], batch: int, length: int, *, full: bool) -> list[tuple[int, int]]:
    """Texts and tokens of each in the batches that a text tower reads, padded to the longest or to the full length."""
    parts = [part for block in batches(lengths, TEXTS) for part in batches(block, batch)]
    return [(len(part), length if full else min(length or max(part), max(part))) for part in parts]
