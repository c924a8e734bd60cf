"""The command line as a person or a program meets it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path


def test_help_is_worth_reading(invoke: Callable[..., str]):
    for command in ([], ["audit"], ["measure"], ["report"], ["list"], ["data"]):
        assert "Usage" in invoke(*command, "--help")


def test_an_error_is_a_message_and_not_a_traceback(refused: Callable[..., str], tmp_path: Path):
    told = refused("audit", "null", "--study", "appa", "--out", str(tmp_path))
    assert "UnknownName" in told
    assert "Did you mean 'apa'?" in told
    assert "Traceback" not in told


def test_markup_in_a_name_is_shown_not_interpreted(refused: Callable[..., str], tmp_path: Path):
    assert "'[bold]x[/bold]'" in refused("audit", "null", "--dataset", "[bold]x[/bold]", "--out", str(tmp_path))


def test_the_version_is_told(invoke: Callable[..., str]):
    assert invoke("--version").strip() == f"beholder {version('beholder-audit')}"
