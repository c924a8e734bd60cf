"""Ctrl-C and disk errors: a message that says what is kept and what to do."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.cli.group import stopped
from beholder.core.errors import UsageError

RUN = CliRunner()
SMALL = ["audit", "null", "--limit", "2", "--draws", "100"]


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    return ["--out", str(tmp_path / "run"), "--store", str(tmp_path / "store")]


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("beholder.audit.audit_models", fail)


def test_ctrl_c_says_what_is_kept_and_how_to_go_on(monkeypatch: pytest.MonkeyPatch, places: list[str]):
    failing(monkeypatch, KeyboardInterrupt())
    monkeypatch.setattr("sys.argv", ["beholder", *SMALL])
    result = RUN.invoke(app, [*SMALL, *places])
    assert result.exit_code == 130
    assert "Finished work is kept" in result.stderr
    assert "beholder audit null --limit 2" in result.stderr


def test_only_what_goes_on_is_said_to_go_on():
    assert stopped("list", ["list", "models"]).strip() == "Stopped."
    assert "'a b'" in stopped("audit", ["audit", "--out", "a b"])


def test_a_full_disk_is_a_message_that_names_the_file(monkeypatch: pytest.MonkeyPatch, places: list[str]):
    failing(monkeypatch, OSError(errno.ENOSPC, "No space left on device", "/disk/results.csv"))
    with pytest.raises(UsageError, match=r"/disk/results\.csv: No space left on device"):
        RUN.invoke(app, [*SMALL, *places], catch_exceptions=False)


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, places: list[str]):
    failing(monkeypatch, FileNotFoundError(errno.ENOENT, "No such file", "x"))
    with pytest.raises(FileNotFoundError):
        RUN.invoke(app, [*SMALL, *places], catch_exceptions=False)
