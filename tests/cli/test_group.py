"""Ctrl-C and disk errors: a message that says what is kept and what to do."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder.cli import Stops, app, stopped
from beholder.core.errors import UsageError

RUN = CliRunner()
SMALL = ["audit", "null", "--limit", "2", "--draws", "100"]


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    return ["--out", str(tmp_path / "run"), "--store", str(tmp_path / "store")]


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("beholder.cli.audit.audit_models", fail)


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


SLOW = """
import signal, sys, time
import beholder._audit
from beholder.cli import main

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests under nohup would hand on that it is ignored

def audit(*_):
    try:
        print("at work", flush=True)
        time.sleep(600)
    finally:
        print("keeping", flush=True)
        sys.stdin.readline()  # the test's word that all signals are sent
        print("kept", flush=True)

beholder._audit.audit_models = audit
sys.argv = ["beholder", "audit", "null"]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("signals", "status"), [((signal.SIGTERM,), 143), ((signal.SIGHUP, signal.SIGINT), 129)])
def test_a_signal_keeps_finished_work_and_a_second_one_prints_no_traceback(
    signals: tuple[signal.Signals, ...], status: int, tmp_path: Path
):
    with subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        assert process.stdout
        for number, line in zip(signals, ("at work", "keeping"), strict=False):
            while process.stdout.readline().strip() != line:
                pass
            process.send_signal(number)
        printed, said = process.communicate("\n", timeout=300)
    assert process.returncode == status
    assert printed.strip().endswith("kept")
    assert "Finished work is kept" in said
    assert "Traceback" not in said
    assert ("Once more, and the program ends at once" in said) == (len(signals) > 1)


def test_a_signal_that_is_ignored_stays_ignored_and_handlers_are_put_back():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stops():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def loop(folder: Path) -> Path:
    (folder / "loop").symlink_to(folder / "loop")
    return folder / "loop" / "run"


@pytest.mark.parametrize(
    ("place", "said"),
    [(loop, "leads in a circle|Too many levels"), (lambda folder: folder / ("n" * 300), "File name too long")],
)
def test_an_out_folder_that_cannot_be_is_told(place: Callable[[Path], Path], said: str, tmp_path: Path):
    with pytest.raises(UsageError, match=said):
        RUN.invoke(app, [*SMALL, "--out", str(place(tmp_path))], catch_exceptions=False)


@pytest.mark.slow
def test_a_limit_of_file_sizes_is_told_with_the_file(tmp_path: Path):
    code = (
        "import resource, sys; from beholder.cli import main; resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))\n"
    )
    code += "sys.argv = ['beholder', *sys.argv[1:]]; main()"
    words = ["audit", "null", "-s", "apa", "--limit", "2", "--draws", "100", "--out", "run", "--store", "store"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
