"""Stands before the package of this name, which compiles 38 grammars (most of a second) wherever altair is imported.

The package is loaded when it is first asked. It is here for one test alone, that of CycloneDX.
"""

from __future__ import annotations

import importlib
import os
import sys
from functools import cache
from typing import Any


def is_valid_syntax(term: str, value: str) -> Any:
    """What the package says."""
    return _package().is_valid_syntax(term, value)


@cache
def _package() -> Any:
    here, path = os.path.dirname(os.path.realpath(__file__)), list(sys.path)
    del sys.modules[__name__]
    sys.path[:] = [folder for folder in path if os.path.realpath(folder) != here]
    try:
        return importlib.import_module(__name__)
    finally:
        sys.path[:] = path
