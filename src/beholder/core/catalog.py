"""Find a thing by its name; an unknown name is an error that lists what exists and the nearest match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

from beholder.core.errors import UnknownName, UsageError

Thing = TypeVar("Thing")


class Catalog(Mapping[str, Thing], Generic[Thing]):
    """Named things of one kind, in the order they were declared.

    >>> animals = Catalog("animal", {"horse": 1, "hare": 2})
    >>> animals["horse"]
    1

    `lazy` names things as `module:attribute`; each is imported when it is first used.
    """

    def __init__(
        self, kind: str, things: Mapping[str, Thing] | None = None, *, lazy: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self._things = dict(things or {})
        self._lazy = dict(lazy or {})
        self._added: set[str] = set()

    def add(self, name: str, thing: Thing) -> None:
        """Add a user's own thing. It may be added again; things that come with Beholder cannot be replaced."""
        if self.came_with_beholder(name):
            raise UsageError(f"The {self.kind} '{name}' comes with Beholder: choose another name for yours.")
        self._things[name] = thing
        self._added.add(name)

    def came_with_beholder(self, name: str) -> bool:
        """Whether it comes with Beholder rather than from a user."""
        return name in self and name not in self._added

    def __getitem__(self, name: str) -> Thing:
        if name not in self:
            raise UnknownName(self.kind, name, self)
        if name not in self._things:
            module, _, attribute = self._lazy[name].partition(":")
            self._things[name] = getattr(import_module(module), attribute)
        return self._things[name]

    def get(self, name: str, default: Thing | None = None) -> Thing | None:  # type: ignore[override]
        """The thing of that name, or the default: a wrong name is no error here."""
        try:
            return self[name]
        except UnknownName:
            return default

    def __contains__(self, name: object) -> bool:
        return name in self._things or name in self._lazy

    def __iter__(self) -> Iterator[str]:
        return iter([*self._lazy, *(name for name in self._things if name not in self._lazy)])

    def __len__(self) -> int:
        return len(self._lazy.keys() | self._things.keys())
