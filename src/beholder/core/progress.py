"""Progress of long work, for whoever wants to show it; and memory that runs out."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from beholder.core.errors import OutOfMemory


class Advance(Protocol):
    """Moves a bar by `count`; a note is shown beside it until the next one."""

    def __call__(self, count: int, note: str = "") -> None: ...


class Progress(Protocol):
    """Opens a bar and hands out the function that moves it; a total of 0 is work of unknown length.

    `later` is how many more come after this bar in the same run, for the time that is left in all.
    """

    def __call__(
        self, label: str, total: int, done: int, later: int = 0, unit: str = "images"
    ) -> AbstractContextManager[Advance]: ...


@contextmanager
def silent(label: str, total: int, done: int, later: int = 0, unit: str = "images") -> Iterator[Advance]:
    """Nobody is watching."""
    yield lambda count, note="": None


def followed_by(progress: Progress, more: int) -> Progress:
    """The same progress, in work after which `more` are still to come."""
    return lambda label, total, done, later=0, unit="images": progress(label, total, done, later + more, unit)


# Memory

LEAST = 2 << 30  # bytes of address space below which libraries fail to load, or hang, without saying why
RAN_OUT = re.compile(
    r"out of memory|(can.?t|cannot|unable to|failed to) (allocate|map segment|start new thread|spawn)|bad_alloc|"
    r"memory allocation of",
    re.IGNORECASE,
)
ADVICE = "Close other programs, use fewer images (--limit) or a smaller model, or allow more memory (ulimit -v)."


def require_memory() -> None:
    """Raise where the process may not have enough memory for the libraries alone."""
    try:
        import resource  # not on every system
    except ImportError:
        return
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if allowed != resource.RLIM_INFINITY and allowed < LEAST:
        raise OutOfMemory(
            f"This process may use {allowed / 2**30:.1f} GB of memory. Beholder needs at least {LEAST >> 30} GB, and a "
            "model's weights beside it.\nAllow it more: ulimit -v unlimited."
        )


def ran_out(error: BaseException) -> bool:
    """Whether an error, or what it came from, says that memory ran out: each library says so in its own way."""
    if isinstance(error, MemoryError) or RAN_OUT.search(str(error)):
        return True
    cause = error.__cause__ or error.__context__
    return cause is not None and ran_out(cause)
