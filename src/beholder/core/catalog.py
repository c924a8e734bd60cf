"""Find a thing by its name; an unknown name is an error that lists what exists and the nearest match."""

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Generic, TypeVar

from beholder.core.errors import BeholderError, BrokenPlugin, UnknownName, UsageError

Thing = TypeVar("Thing")
log = logging.getLogger(__name__)


class Catalog(Mapping[str, Thing], Generic[Thing]):
    """Named things of one kind, in the order they were declared.

    `lazy` names things as `module:attribute`; each is imported when it is first used. So are the things that installed
    packages bring along as entry points of the group `installed`; one that cannot be imported is left out of
    `items()` and `values()`, with a warning.
    """

    def __init__(
        self,
        kind: str,
        things: Mapping[str, Thing] | None = None,
        *,
        lazy: Mapping[str, str] | None = None,
        installed: str | None = None,
    ) -> None:
        self.kind, self._group = kind, installed
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
        return (name in self._things or name in self._lazy) and name not in self._added

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """What installed packages bring along, by name."""
        points = {point.name: point for point in entry_points_of(self._group)} if self._group else {}
        for name in [name for name in points if self.came_with_beholder(name)]:
            log.warning(
                "The %s '%s' of the package %s is left out: one of that name comes with Beholder.",
                *(self.kind, name, _package(points.pop(name))),
            )
        return points

    def _load_installed(self, name: str) -> Thing:
        """What an entry point names: the thing itself, or a module that adds it."""
        point = self._installed[name]
        try:
            thing = point.load()
            self._added.add(name)
            return self._things[name] if isinstance(thing, ModuleType) else thing
        except Exception as error:
            raise BrokenPlugin(self.kind, name, _package(point), error) from error

    def __getitem__(self, name: str) -> Thing:
        if name not in self:
            raise UnknownName(self.kind, name, self)
        if name not in self._things:
            self._things[name] = resolve_name(self._lazy[name]) if name in self._lazy else self._load_installed(name)
        return self._things[name]

    def get(self, name: str, default: Thing | None = None) -> Thing | None:  # type: ignore[override]
        """The thing of that name, or the default: a wrong name is no error here."""
        return self[name] if name in self else default  # noqa: SIM401  (this is `get`)

    def items(self) -> list[tuple[str, Thing]]:  # type: ignore[override]
        """Every thing that can be loaded; of installed packages, one that cannot is reported once."""
        found = []
        for name in self:
            try:
                found.append((name, self[name]))
            except BrokenPlugin as error:
                log.warning("%s", error)
                del self._installed[name]
        return found

    def values(self) -> list[Thing]:  # type: ignore[override]
        """The things of `items`."""
        return [thing for _, thing in self.items()]

    def __contains__(self, name: object) -> bool:
        return name in self._things or name in self._lazy or name in self._installed

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._lazy, *self._things, *self._installed]))

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def entry_points_of(group: str) -> EntryPoints:
    """Those of all installed packages: looking for them takes a while."""
    return entry_points(group=group)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value


# Plug-ins

ENVIRONMENT = "BEHOLDER_PLUGINS"
loaded_plugins: list[str] = []  # those that ran in this process; workers elsewhere load them too


def load_plugins(named: Iterable[str] = ()) -> None:
    """Run the given plug-ins and those of the environment, each once: Python files, or modules by name."""
    of_environment = os.environ.get(ENVIRONMENT, "").split(os.pathsep)
    for name in dict.fromkeys(name for name in (*of_environment, *named) if name):
        try:
            _run(name)
            loaded_plugins.append(name)
        except BeholderError:
            raise
        except Exception as error:
            raise UsageError(f"The plug-in {name} failed: {type(error).__name__}: {error}") from error


def _run(name: str) -> None:
    """A file is run under its own name, so that its definitions can be imported; a module is imported."""
    if not name.endswith(".py"):
        import_module(name)
        return
    path = Path(name).expanduser().resolve()
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(f"There is no plug-in at {path}.")
    if loaded := sys.modules.get(path.stem):
        if getattr(loaded, "__file__", None) == str(path):
            return  # it ran before, or another plug-in imported it
        raise UsageError(f"The plug-in {path} has the name of a module that is already loaded: rename the file.")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
