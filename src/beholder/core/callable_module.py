"""A module that can be called: `beholder.audit(…)` is a function, and `from beholder.audit import …` works too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def callable_module(name: str, function: Callable[..., Any]) -> None:
    """Let a call of the module be a call of the function; it shows the function's signature and docstring."""
    module = sys.modules[name]
    kind = type("CallableModule", (ModuleType,), {"__call__": staticmethod(function)})
    module.__class__ = kind
    vars(module)["__wrapped__"] = function  # where `inspect` and `help` look for a signature
