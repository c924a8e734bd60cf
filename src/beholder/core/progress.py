"""Progress of long work, told to whoever wants to show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Advance(Protocol):
    """Moves a bar by `count`; a note is shown beside it until the next one."""

    def __call__(self, count: int, note: str = "") -> None: ...


class Progress(Protocol):
    """Opens a bar and hands out the function that moves it; a total of 0 is work of unknown length.

    `later` is how many more come after this bar in the same run, for the time that is left in all.
    """

    def __call__(self, label: str, total: int, done: int, later: int = 0) -> AbstractContextManager[Advance]: ...


@contextmanager
def silent(label: str, total: int, done: int, later: int = 0) -> Iterator[Advance]:
    """Nobody is watching."""
    yield lambda count, note="": None


def followed_by(progress: Progress, more: int) -> Progress:
    """The same progress, in work after which `more` are still to come."""

    def opened(label: str, total: int, done: int, later: int = 0) -> AbstractContextManager[Advance]:
        return progress(label, total, done, later + more)

    return opened
