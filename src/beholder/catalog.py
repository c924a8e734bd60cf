"""Find a thing by its name; a wrong name answers with what exists and the nearest match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from beholder.errors import UnknownName

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
