"""How many tokens a model reads about a picture, shared and one by one.

With a checkpoint's own processor at hand, the tokens are those that the engine lays out; without it they are
estimated: a token for each word and sign, and what a chat's form adds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

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
    pairs: float
    """Pairs of tokens whose attention is computed, shared."""
    pairs_one_by_one: float
    questions: int
    shared: bool
    """Whether the questions can share words; else only the image tower's work is."""

    @property
    def read(self) -> float:
        """Tokens that go through the language model."""
        return self.picture + self.text if self.shared else self.one_by_one

    @property
    def text(self) -> float:
        return self.trunk + self.branches + self.leaves

    @property
    def text_one_by_one(self) -> float:
        return self.one_by_one - self.picture * self.questions


def reading(sequences: Sequence[Sequence[int]], picture: int, *, shared: bool) -> Reading:
    """Of questions as tokens, the picture's among them."""
    tree = prompt_tree(sequences)
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.float64)
    ends = np.sort(tree.last_tokens)
    below = np.searchsorted(ends, tree.end) - np.searchsorted(ends, np.arange(tree.size))
    leaves = int((below[tree.trunk :] == 1).sum())
    return Reading(
        picture,
        tree.trunk - picture,
        tree.size - tree.trunk - leaves,
        leaves,
        float(lengths.sum()),
        computed_pairs(tree),
        float((lengths**2).sum()),
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
    picture, trunk, branches, leaves, one_by_one, pairs, pairs_one_by_one = columns
    first = readings[0]
    return Reading(picture, trunk, branches, leaves, one_by_one, pairs, pairs_one_by_one, first.questions, first.shared)


# Without the checkpoint's files


def estimated(questions: Sequence[str], picture: int, *, shared: bool) -> Reading:
    """By words and signs."""
    numbers: dict[str, int] = {}
    form = [FORM] * BEFORE + [PICTURE] * picture
    sequences = [
        [*form, *(numbers.setdefault(word, len(numbers)) for word in words(question)), *[FORM] * AFTER]
        for question in questions
    ]
    return reading(sequences, picture, shared=shared)


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


class ProcessorTokens:
    """Questions as the engine lays them out, by the checkpoint's own processor and a model without weights."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _sharing(self) -> Any:
        # Imported here because torch is optional and slow to start.
        from beholder.models.checkpoint.checkpoint import (
            Checkpoint,
            as_model_error,
            captured_warnings,
            torch,
            transformers,
        )
        from beholder.models.generative.loaded_model import LoadedModel
        from beholder.models.generative.reuse import contract
        from beholder.models.generative.sharing import Sharing

        folder = self._folder
        with as_model_error(folder), captured_warnings():
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            with torch.device("meta"):
                model = transformers.AutoModelForImageTextToText.from_config(config)
            images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil", local_files_only=True)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            loaded = LoadedModel.of(folder, Checkpoint(model, images, tokenizer, []), questions=None)
        return Sharing(loaded, reuse=contract(model), quiet=True)

    def readings(self, questions: Sequence[str], pictures: Sequence[Image.Image]) -> list[tuple[Reading, Size | None]]:
        """For each picture: what is read about it, and how large the image tower is given it where that differs."""
        sharing = self._sharing
        shared = sharing.reuse.name in ("PREFIX", "TRUNK")
        config = sharing.loaded.model.config
        mark = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
        found = []
        for image in pictures:
            layout, seen = sharing.layout(sharing.loaded.pictures.develop(image), questions)
            sequences = [text["input_ids"][0].tolist() for text in layout.texts]
            grid = seen.get("image_grid_thw")
            side = getattr(config.vision_config, "patch_size", 1)
            size = None if grid is None else (int(grid[0][1]) * side, int(grid[0][2]) * side)
            found.append((reading(sequences, sequences[0].count(mark), shared=shared), size))
        return found
