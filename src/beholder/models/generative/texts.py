"""Questions as tokens: read by the checkpoint's processor once for all pictures that take up as many tokens.

A processor writes a picture's placeholders into every text and tokenises it. Hundreds of questions about thousands
of pictures would spend more time there than in the model, though only the placeholders ever differ.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from beholder.models.checkpoint.checkpoint import torch
from beholder.models.generative.prompt_tree import PromptTree, prompt_tree
from beholder.models.torch_types import Inputs

Encoded = Inputs
Encode = Callable[[str], tuple[Encoded, Encoded]]
"""From a question to the inputs made of its text and the inputs made of the picture now shown."""
OF_TOKENS = {"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids"}
"""Inputs that follow from the tokens alone. Any other may depend on the picture, and then no layout is kept."""
KEPT = 16
"""Layouts kept at a time; one of 500 questions takes a few megabytes."""


@dataclass
class Layout:
    """All questions as tokens, for pictures that take up the same tokens."""

    texts: list[Encoded]
    _trees: dict[tuple[int, ...] | None, PromptTree] = field(default_factory=dict)

    def tree(self, indices: Sequence[int] | None = None) -> PromptTree:
        """The tree of all questions, or of some."""
        key = None if indices is None or len(indices) == len(self.texts) else tuple(indices)
        if key not in self._trees:
            chosen = self.texts if key is None else [self.texts[index] for index in key]
            self._trees[key] = prompt_tree([_ids(text) for text in chosen])
        return self._trees[key]


class Texts:
    """Caches the layouts of recent questions."""

    def __init__(self) -> None:
        self._questions: tuple[str, ...] = ()
        self._layouts: OrderedDict[object, Layout] = OrderedDict()

    def layout(self, questions: Sequence[str], encode: Encode) -> tuple[Layout, Encoded]:
        """The questions about the picture that `encode` shows, and what is known of that picture."""
        if tuple(questions) != self._questions:
            self._questions, self._layouts = tuple(questions), OrderedDict()
        first, seen = encode(questions[0])
        if not OF_TOKENS.issuperset(first):
            return Layout([first, *(encode(question)[0] for question in questions[1:])]), seen
        shapes = tuple((name, tuple(values.shape)) for name, values in seen.items())
        key = shapes, tuple(_ids(first))
        if key not in self._layouts:
            known = next(iter(self._layouts.values()), None)
            texts = known and _respelled(known, first, questions, encode)
            self._layouts[key] = Layout(texts or [first, *(encode(question)[0] for question in questions[1:])])
            if len(self._layouts) > KEPT:
                self._layouts.popitem(last=False)
        self._layouts.move_to_end(key)
        return self._layouts[key], seen


def _respelled(known: Layout, first: Encoded, questions: Sequence[str], encode: Encode) -> list[Encoded] | None:
    """A known layout with another picture's tokens in the trunk; None if the processor would write it otherwise."""
    trunk, before, after = known.tree().trunk, _ids(known.texts[0]), _ids(first)
    cut = len(after) - (len(before) - trunk)
    if cut <= 0 or after[cut:] != before[trunk:]:
        return None
    texts = [
        {name: torch.cat([first[name][:, :cut], text[name][:, trunk:]], dim=1) for name in first}
        for text in known.texts
    ]
    last, _ = encode(questions[-1])
    alike = all(np.array_equal(last[name].numpy(), texts[-1][name].numpy()) for name in last)
    return texts if alike else None


def _ids(text: Encoded) -> list[int]:
    ids: list[int] = text["input_ids"][0].tolist()
    return ids
