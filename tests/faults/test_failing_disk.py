"""A disk that fails at any operation: what was finished is kept, the error names the file, the next run is whole."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from faults.disk import Disk
from faults.toy import Pairs, Towers, lacking, scores, toy_task
from PIL import Image

from beholder.cli import REFUSED
from beholder.core.errors import BeholderError
from beholder.models.preparation import Cut
from beholder.scores import fill as filling
from beholder.scores import reading
from beholder.scores import shelf as shelves
from beholder.scores.fill import FillOptions, fill
from beholder.scores.score_matrix import Task
from beholder.scores.shelf import Shelf
from beholder.scores.store import Store, verify_store

ERRORS = ("EIO", "ENOSPC", "EACCES", "EMFILE", "ESTALE")
OPERATIONS = ("open to read", "read", "open to write", "write", "fsync", "rename", "unlink", "mkdir", "chmod", "link")
IMAGES, BEFORE = 15, 8


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "BLOCK_ROWS", 4)
    monkeypatch.setattr(shelves, "FEW", 2)  # and merged at every start


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if there is one: what is tested here is not how long a disk takes."""
    with TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else tmp_path) as folder:
        yield Path(folder)


@pytest.fixture(params=[Towers, Pairs], ids=["contrastive", "pairs"])
def scorer(request: pytest.FixtureRequest) -> type:
    return request.param


@pytest.fixture
def begun(scorer: type, place: Path) -> Path:
    """A store with the first images of a contrastive model; for the other model there is none yet."""
    if scorer is Towers:
        scores(toy_task(place / "images", BEFORE), scorer(), place / "begun")
    return place / "begun"


def copied(begun: Path, root: Path) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    if begun.exists():
        shutil.copytree(begun, root)
    return root


def failing(code: int):
    def fail(path: str) -> None:
        raise OSError(code, os.strerror(code), path)

    return fail


def disturbed(root: Path, task: Task, scorer: Any, disk: Disk) -> np.ndarray | Exception:
    """The scores, or the error that a person is told."""
    try:
        with disk:
            return scores(task, scorer, root)
    except (OSError, BeholderError) as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_any_operation_may_fail(operation: str, scorer: type, begun: Path, place: Path):
    """Every occurrence of the operation, with every error: one cell each."""
    task, root = toy_task(place / "images", IMAGES), place / "store"
    right = scores(task, scorer(), place / "right")
    with Disk(copied(begun, root), only=operation) as disk:
        scores(task, scorer(), root)
    for at in range(len(disk.done)):
        for name in ERRORS:
            cell, code = (operation, at, name), getattr(errno, name)
            outcome = disturbed(copied(begun, root), task, scorer(), Disk(root, failing(code), at, operation))
            if isinstance(outcome, OSError):
                assert outcome.errno == code, cell
                assert code in REFUSED, cell
                assert str(outcome.filename).startswith(str(root)), cell
            elif isinstance(outcome, BeholderError):
                assert str(root) in str(outcome), cell
            else:
                assert np.array_equal(outcome, right), cell
            still, again = lacking(task, scorer(), root), scorer()
            assert np.array_equal(scores(task, again, root), right), cell
            assert again.asked == still, cell
            assert verify_store(Store(root)).problems == [], cell


def test_a_memory_of_digests_that_fails_costs_only_time(begun: Path, scorer: type, place: Path):
    task, root = toy_task(place / "images", IMAGES), place / "store"
    right = scores(task, scorer(), place / "right")

    def fail(path: str) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with Disk(copied(begun, root), only="sqlite") as disk:
        scores(task, scorer(), root)
    for at in range(len(disk.done)):
        with Disk(copied(begun, root), fail, at, "sqlite"):
            assert np.array_equal(scores(task, scorer(), root), right)


def test_a_complete_store_that_can_only_be_read_is_enough(
    scorer: type, place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """As on a read-only mount: nothing is written or locked, and what is missing is told before it is scored."""
    task, root = toy_task(place / "images", IMAGES), place / "store"
    right = scores(task, scorer(), root)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK and access(path, mode))
    monkeypatch.setattr(os, "utime", lambda path: failing(errno.EROFS)(str(path)))
    with Disk(root) as disk:
        assert np.array_equal(scores(task, scorer(), root), right)
    assert set(disk.done) == {"open to read", "read", "sqlite"}
    assert caplog.text == ""
    with pytest.raises(BeholderError, match=r"is not writable, and the store lacks 2 images"):
        scores(toy_task(place / "images", IMAGES + 2), scorer(), root)


def test_a_limit_on_the_size_of_files_is_told_by_file(scorer: type, place: Path):
    task, limits = toy_task(place / "images", IMAGES), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        outcome = disturbed(place / "store", task, scorer(), Disk(place))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert isinstance(outcome, OSError)
    assert outcome.errno == errno.EFBIG
    assert errno.EFBIG in REFUSED
    assert str(outcome.filename).endswith(".parquet")


def test_a_folder_in_the_place_of_a_manifest_is_told_by_name(scorer: type, place: Path):
    task, root = toy_task(place / "images", IMAGES), place / "store"
    scores(task, scorer(), root)
    (manifest,) = root.glob("*/complete/*.json")
    manifest.unlink()
    manifest.mkdir()
    outcome = disturbed(root, task, scorer(), Disk(place))
    assert isinstance(outcome, IsADirectoryError)
    assert outcome.filename == str(manifest)


@pytest.mark.parametrize("jump", [-86400.0, 86400.0])
def test_a_clock_that_jumps_neither_hangs_nor_changes_anything(
    jump: float, scorer: type, place: Path, monkeypatch: pytest.MonkeyPatch
):
    task = toy_task(place / "images", IMAGES)
    right, now = scores(task, scorer(), place / "right"), [0.0]

    def monotonic() -> float:
        now[0] += jump
        return now[0]

    monkeypatch.setattr("time.monotonic", monotonic)
    assert np.array_equal(scores(task, scorer(), place / "store"), right)


class InProcesses(Towers):
    """Its pictures are cut by worker processes."""

    preparation = Cut(2, Image.Resampling.BICUBIC, (2, 2))

    def embed_prepared(self, prepared):
        return super().embed_prepared([np.asarray(each).tobytes() for each in prepared])


def test_a_wall_clock_that_jumps_back_by_hours_stops_no_workers(place: Path, monkeypatch: pytest.MonkeyPatch):
    """The monotonic clock does not jump: the operating system promises that, and Python's own waiting needs it."""
    monkeypatch.setattr(reading, "PROCESSES_FROM", 1)
    task, options, now, jumps = toy_task(place / "images", IMAGES), FillOptions(processes=2, threads=1), time.time, [0]

    def back() -> float:
        jumps[0] += 1
        return now() - 7200.0 * jumps[0]

    right = fill([task], InProcesses(), Store(place / "right"), options).matrices[0].values
    monkeypatch.setattr(time, "time", back)
    assert np.array_equal(fill([task], InProcesses(), Store(place / "store"), options).matrices[0].values, right)
    assert back() < now() - 7000.0


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcc"), reason="a C compiler makes the library")
def test_calls_of_the_system_that_fail_below_python_change_no_score(place: Path):
    """EIO from a preloaded library: SQLite and Arrow meet it too."""
    here, library = Path(__file__).parent, place / "failing.so"
    subprocess.run(["gcc", "-shared", "-fPIC", here / "failing.c", "-o", library, "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(here.parent)}
    command = [sys.executable, here / "below.py", place]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 40


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can become nobody and come back")
def test_a_permission_lost_in_the_middle_keeps_what_was_finished(
    scorer: type, place: Path, monkeypatch: pytest.MonkeyPatch
):
    """As nobody, for whom modes bind: the folder becomes read-only after its first block."""
    task, root, nobody = toy_task(place / "images", IMAGES), place / "store", 65534
    right = scores(task, scorer(), place / "right")

    def put(shelf: Shelf, *arguments: Any, put: Any = Shelf.put) -> None:
        put(shelf, *arguments)
        shelf.folder.chmod(0o500 if shelf.folder.name != "texts" else 0o700)

    monkeypatch.setattr(Shelf, "put", put)
    place.chmod(0o777)
    os.setresuid(nobody, nobody, 0)
    try:
        outcome = disturbed(root, task, scorer(), Disk(place))
    finally:
        os.setresuid(0, 0, 0)
        monkeypatch.undo()
    assert isinstance(outcome, PermissionError)
    assert errno.EACCES in REFUSED
    assert str(outcome.filename).startswith(str(root))
    for folder in root.rglob("*"):
        folder.chmod(0o700)
    still, again = lacking(task, scorer(), root), scorer()
    assert still == IMAGES - 4
    assert np.array_equal(scores(task, again, root), right)
    assert again.asked == still


def test_a_score_that_is_no_number_is_never_stored(place: Path):
    class Broken(Pairs):
        def score_prepared(self, prepared, prompts):
            cells = super().score_prepared(prepared, prompts)
            cells[-1, -1, -1] = np.inf if self.asked > 4 else 0
            return cells

    task = toy_task(place / "images", IMAGES)
    with pytest.raises(BeholderError, match=r"NaN or infinite scores for '.*7\.ppm'"):
        scores(task, Broken(), place / "store")
    assert lacking(task, Broken(), place / "store") == IMAGES - 4
