"""Memory: whether a process may have enough of it, and whether an error means that it ran out."""

from __future__ import annotations

import re

from beholder.core.errors import OutOfMemory

LEAST = 2 << 30
"""Bytes of address space below which libraries fail to load, or hang, in ways that cannot be told."""
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
