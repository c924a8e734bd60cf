"""Progress of long work, told to whoever wants to show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]


class Progress(Protocol):
    """Opens a bar and hands out the function that moves it; a total of 0 is work of unknown length."""

    def __call__(self, label: str, total: int, done: int) -> AbstractContextManager[Advance]: ...


@contextmanager
def silent(label: str, total: int, done: int) -> Iterator[Advance]:
    """Nobody is watching."""
    yield lambda count: None
