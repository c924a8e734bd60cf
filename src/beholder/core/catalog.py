"""Find a thing by its name; a wrong name answers with what exists and the nearest match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from beholder.core.errors import UnknownName, UsageError

Thing = TypeVar("Thing")


class Catalog(Mapping[str, Thing], Generic[Thing]):
    """Named things of one kind, in the order they were declared.

    >>> animals = Catalog("animal", {"horse": 1, "hare": 2})
    >>> animals["horse"]
    1
    """

    def __init__(self, kind: str, things: Mapping[str, Thing]) -> None:
        self.kind = kind
        self._things = dict(things)
        self._added: set[str] = set()

    def add(self, name: str, thing: Thing) -> None:
        """One more, a user's own; it may be added again, but nothing that comes with Beholder changes its meaning."""
        if name in self._things and name not in self._added:
            raise UsageError(f"The {self.kind} '{name}' comes with Beholder: give yours another name.")
        self._things[name] = thing
        self._added.add(name)

    def came_with_beholder(self, name: str) -> bool:
        """Whether it was there from the start."""
        return name in self._things and name not in self._added

    def __getitem__(self, name: str) -> Thing:
        if name not in self._things:
            raise UnknownName(self.kind, name, self._things)
        return self._things[name]

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)
