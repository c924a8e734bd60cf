"""Prompt tree: many token sequences that begin alike, laid out so that what they share is there once.

Sequences are walked in sorted order and each adds the tokens that it does not share with the one before, so the
packed tokens stand in depth-first order and the subtree of a token is the run of tokens that follows it. One number
per token, where that run ends, is then all that attention needs to know: token q sees token k if k ≤ q < end[k].

    trunk                  a picture, the instruction, the beginning of all questions
    ├─ Is the person       seen by its own two leaves only
    │  ├─ kind?            question 1 is read off its last token
    │  └─ kind or not?     question 2
    └─ Describe: rude?     question 3
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import eq

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PromptTree:
    """Packed token sequences; all arrays run along the packed tokens but `last_tokens`."""

    ids: Ints
    depth: Ints  # place in its own sequence
    end: Ints  # where the run of tokens ends that have this one in their sequence
    last_tokens: Ints  # for each sequence, in the order given: the packed position of its last token
    trunk: int  # how many tokens all sequences share; at least the last token of each is not in the trunk

    @property
    def size(self) -> int:
        return len(self.ids)

    def ancestors(self, position: int) -> Ints:
        """The packed positions of the tokens before this one in its sequence, in order."""
        return np.flatnonzero(self.end[:position] > position)

    def spelled(self, sequence: int) -> list[int]:
        """The tokens of a sequence, read back."""
        last = int(self.last_tokens[sequence])
        return [*self.ids[self.ancestors(last)].tolist(), int(self.ids[last])]


def prompt_tree(sequences: Sequence[Sequence[int]]) -> PromptTree:
    """The tree of some non-empty sequences; equal ones share all their tokens."""
    if not sequences or not all(len(sequence) for sequence in sequences):
        raise ValueError("a prompt tree needs sequences of at least one token")
    tokens = [list(sequence) for sequence in sequences]
    order = sorted(range(len(tokens)), key=tokens.__getitem__)
    ids, depth, end = list[int](), list[int](), list[int]()
    last_tokens = np.empty(len(tokens), dtype=np.int64)
    path: list[int] = []  # packed positions of the tokens of the sequence last walked
    before: list[int] = []
    for number in order:
        sequence = tokens[number]
        shared = _shared(before, sequence)
        for position in path[shared:]:  # the subtrees of the tokens that are left end here
            end[position] = len(ids)
        path[shared:] = range(len(ids), len(ids) + len(sequence) - shared)
        ids += sequence[shared:]
        depth += range(shared, len(sequence))
        end += [-1] * (len(sequence) - shared)
        last_tokens[number], before = path[-1], sequence
    trunk = min(_shared(tokens[order[0]], tokens[order[-1]]), min(map(len, tokens)) - 1)
    ends = np.where(np.array(end) < 0, len(ids), end)
    return PromptTree(np.array(ids), np.array(depth), ends, last_tokens, trunk)


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences have in common from their beginning."""
    return sum(takewhile(bool, map(eq, one, other)))
