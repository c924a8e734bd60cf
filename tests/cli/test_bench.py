"""`beholder bench`: timings that lie beside the sources, and are no part of the installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.cli import checks as bench
from beholder.core.errors import UnknownName, UsageError


def test_without_a_clone_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(bench, "SPEED", tmp_path / "speed")
    with pytest.raises(UsageError, match="needs a clone of the project"):
        bench._module("architectures")


def test_the_architectures_that_help_names_are_known():
    known = bench._module("architectures")
    assert list(known.ARCHITECTURES) == ["qwen2.5-vl-3b", "llava-1.5-7b", "gemma-3-4b", "paligemma2-3b"]
    with pytest.raises(UnknownName):
        known.architecture("llava-1.5-9b")
