"""Plug-ins: a user's own models, data sets and studies, in Python files outside of Beholder.

    beholder --plugin colours.py audit colour:mean --benchmark apa
    BEHOLDER_PLUGINS=colours.py:my_package.audits beholder audit colour:mean --benchmark apa

A plug-in is code that the user chooses to run. What it adds to `FAMILIES`, `DATASETS` and `STUDIES` is known by name
afterwards, like everything that comes with Beholder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from beholder.core.errors import BeholderError, UsageError

ENVIRONMENT = "BEHOLDER_PLUGINS"
loaded_plugins: list[str] = []
"""Those that ran in this process; workers elsewhere load them too."""


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
