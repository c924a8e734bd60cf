"""How a command ends that does not end by itself."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.cli.group import stopped
from beholder.cli.options import writable
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


@pytest.mark.parametrize("option", ["--out", "--store"])
def test_a_file_in_the_place_of_a_folder_is_told_before_the_work(
    monkeypatch: pytest.MonkeyPatch, option: str, places: list[str], tmp_path: Path
):
    failing(monkeypatch, AssertionError("the work began"))
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match=f"{option} .*taken is a file"):
        RUN.invoke(app, [*SMALL, *places, option, str(tmp_path / "taken" / "run")], catch_exceptions=False)


def test_a_folder_that_may_not_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(UsageError, match="is not writable"):
        writable(tmp_path / "a" / "b", "--out")


def test_asking_makes_no_folder(tmp_path: Path):
    assert writable(tmp_path / "a" / "b", "--out") == tmp_path / "a" / "b"
    assert not (tmp_path / "a").exists()
