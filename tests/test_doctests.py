"""The examples in docstrings are claims, and hold."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import beholder

SOURCE = Path(beholder.__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.glob("beholder/**/*.py"))
    if ">>> " in path.read_text()
]


SLOW = ("beholder._audit", "beholder._compare")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in MODULES]
)
def test_examples_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert (found.attempted > 0, found.failed) == (True, 0)
