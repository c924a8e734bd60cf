"""Embedding: what two-tower adapters share around a model: batches, checked unit rows, notes on cut texts.

Nothing here knows torch or onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from beholder.core.errors import UnusableScore
from beholder.models.scorer import Floats, unit_rows

Item = TypeVar("Item")


class CutTexts:
    """The texts that were longer than the model reads, each noted once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.notes: list[str] = []
        self._seen: set[str] = set()

    def record(self, texts: Sequence[str], lengths: Sequence[int]) -> None:
        """Note every text of more than `limit` tokens."""
        for text, length in zip(texts, lengths, strict=True):
            if length > self.limit and text not in self._seen:
                self._seen.add(text)
                shown = text if len(text) <= 100 else f"{text[:99]}…"
                self.notes.append(f"text of {length} tokens cut to the model's {self.limit}: {shown!r}")


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Consecutive parts of at most `size`, in order.

    >>> list(batches([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    for start in range(0, len(items), max(size, 1)):
        yield items[start : start + max(size, 1)]


def embed_in_batches(
    items: Sequence[Item], size: int, embed: Callable[[Sequence[Item]], npt.NDArray[np.generic]], *, kind: str
) -> Floats:
    """Unit rows for all items, `size` at a time; a row that cannot be used is an error that says which."""
    parts = [np.asarray(embed(part), dtype=np.float32) for part in batches(items, size)]
    if not parts:
        return np.zeros((0, 0), dtype=np.float32)
    return checked_unit_rows(np.concatenate(parts), kind=kind)


def checked_unit_rows(vectors: npt.NDArray[np.generic], *, kind: str) -> Floats:
    """Rows of length 1; raises `UnusableScore` where there is no such row."""
    lengths = np.linalg.norm(np.asarray(vectors, dtype=np.float32), axis=1)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if len(bad):
        raise UnusableScore(kind, bad.tolist())
    return unit_rows(vectors)
