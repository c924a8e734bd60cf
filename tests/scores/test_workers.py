"""Worker processes give what threads give; one that dies or hangs ends the run by name, and nothing scored is lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import DataError
from beholder.datasets import load_dataset
from beholder.models.preparation import Cut
from beholder.models.scorer import ContrastiveScorer, unit_rows
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import prompt_set
from beholder.scores import executor, reading
from beholder.scores import fill as filling
from beholder.scores.fill import FillOptions, fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store

PROMPTS = prompt_set("toy", [{"text": text} for text in ("a", "b", "c")])
THREADS, PROCESSES = FillOptions(processes=0), FillOptions(processes=2)


class Averages(ContrastiveScorer):
    """Vectors of the pixels themselves; `then` is called with the number of the batch just scored."""

    batch_size = 4
    preparation = Cut(8, Image.Resampling.BICUBIC, (8, 8))

    def __init__(self, then: Callable[[int], None] = lambda batch: None) -> None:
        self.spec = ModelSpec("averages", "test", "none", "1", settings={"logit_scale": 10.0})
        self.then, self.batches = then, []

    def embed_prepared(self, prepared: Sequence[np.ndarray]) -> np.ndarray:
        pixels = np.stack(prepared)
        assert pixels.dtype == np.uint8
        self.batches.append(len(pixels))
        self.then(len(self.batches))
        return unit_rows(pixels.reshape(len(pixels), -1) + 1.0)

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        return unit_rows(np.random.default_rng(len(texts)).standard_normal((len(texts), 192)))


@pytest.fixture
def task(people: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setattr(reading, "PROCESSES_FROM", 1)
    monkeypatch.setattr(filling, "BLOCK_ROWS", 4)
    monkeypatch.setattr(reading, "PICTURES_AHEAD", 8)
    return Task("toy", load_dataset(f"folder:{people(30)}"), PROMPTS)


def blocks(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.glob("*/images/*.parquet")}


def test_processes_store_the_bytes_that_threads_store(task: Task, tmp_path: Path):
    plain, apart = Averages(), Averages()
    expected = fill([task], plain, Store(tmp_path / "threads"), THREADS).matrices[0].values
    values = fill([task], apart, Store(tmp_path / "processes"), PROCESSES).matrices[0].values
    np.testing.assert_array_equal(values, expected)
    assert plain.batches == apart.batches == [4] * 7 + [2]
    assert blocks(tmp_path / "threads") == blocks(tmp_path / "processes")


def test_a_bad_picture_is_skipped_or_named(task: Task, tmp_path: Path):
    uri = task.dataset.table["uri"][13]
    whole = fill([task], Averages(), Store(tmp_path / "whole"), THREADS).matrices[0].values
    Path(uri).write_bytes(b"not a picture")
    skipping = FillOptions(processes=2, skip_bad_images=True)
    filled = fill([task], Averages(), Store(tmp_path / "skipped"), skipping)
    assert list(filled.bad_images) == [uri]
    np.testing.assert_allclose(filled.matrices[0].values, np.delete(whole, 13, axis=0), atol=1e-6)
    with pytest.raises(DataError, match=Path(uri).name):
        fill([task], Averages(), Store(tmp_path / "named"), PROCESSES)


def children() -> list[int]:
    return [child.pid for child in multiprocessing.active_children() if child.pid]


@pytest.mark.parametrize(
    ("blow", "message"), [(signal.SIGKILL, "process that reads images died"), (signal.SIGSTOP, "has not answered")]
)
def test_a_worker_that_dies_or_hangs_ends_the_run_and_the_next_run_continues(
    blow: signal.Signals, message: str, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    undisturbed = fill([task], Averages(), Store(tmp_path / "undisturbed"), THREADS).matrices[0].values

    def strike(batch: int) -> None:
        if batch >= 2:
            monkeypatch.setattr(executor, "STUCK_SECONDS", 0.5)
            for child in children():
                with suppress(ProcessLookupError):  # it may have died of the blow before
                    os.kill(child, blow)

    with pytest.raises(DataError, match=f"(?s){message}.*same command continues"):
        fill([task], Averages(strike), Store(tmp_path / "store"), PROCESSES)
    gone_by = time.monotonic() + 120  # the pool's own thread may be the one that has just buried a worker
    while children() and time.monotonic() < gone_by:
        time.sleep(0.05)
    assert not children()
    rest = Averages()
    values = fill([task], rest, Store(tmp_path / "store"), THREADS).matrices[0].values
    assert sum(rest.batches) <= 30 - 8
    np.testing.assert_array_equal(values, undisturbed)


def test_results_come_in_order():
    jobs, sorted_jobs = [[3, 1], [2, 9], [7, 8], [5]], [[1, 3], [2, 9], [7, 8], [5]]
    for pool in (executor.Executor(2), executor.Processes(2)):
        with pool:
            assert list(pool.map(sorted, jobs)) == sorted_jobs


def test_what_comes_before_a_damaged_job_is_done_first():
    def jobs() -> Iterator[str]:
        yield from "ab"
        raise DataError("c is damaged")

    with executor.Executor(2) as pool:
        results = pool.map(str.upper, jobs())
        assert [next(results), next(results)] == ["A", "B"]
        with pytest.raises(DataError, match="c is damaged"):
            next(results)


@pytest.mark.slow
def test_a_script_without_a_guard_is_not_run_again_and_its_workers_do_not_outlive_it(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, multiprocessing\n"
        "from beholder.scores.executor import Processes\n"
        "print('started', flush=True)\n"
        "pool = Processes(2)\n"
        "list(pool.map(abs, range(8)))\n"
        "print(*[child.pid for child in multiprocessing.active_children()], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    started, pids = done.stdout.splitlines()
    assert started == "started"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in pids.split()):
        time.sleep(0.05)
    assert not [pid for pid in pids.split() if Path(f"/proc/{pid}").exists()]


def test_files_are_hashed_on_the_way_and_found_again_by_content(task: Task, tmp_path: Path):
    """By every way of reading: the first run hashes; without its memory, the second finds all contents stored."""
    for options in (THREADS, PROCESSES):
        store = Store(tmp_path / str(options.processes))
        fill([task], Averages(), store, options)
        store.digest_memory.unlink()
        again = Averages()
        fill([task], again, store, options)
        assert again.batches == []
        again.batches.clear()
        fill([task], again, store, FillOptions(processes=0))
        assert again.batches == []


def test_too_little_shared_memory_means_threads(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert reading.fits(1 << 20)
    monkeypatch.setattr(reading, "fits", lambda size: False)
    monkeypatch.setattr(reading.WorkersOnDemand, "started", None)
    scorer = Averages()
    fill([task], scorer, Store(tmp_path), PROCESSES)
    assert sum(scorer.batches) == 30


def test_workers_see_the_environment_and_the_folder_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executor.prepare_to_start()  # what starts them may be older than what they must see
    monkeypatch.setenv("BEHOLDER_OF_NOW", "1")
    monkeypatch.delenv("HOME")
    monkeypatch.chdir(tmp_path)
    with executor.Processes(1) as pool:
        seen = [pool.submit(os.getenv, name) for name in ("BEHOLDER_OF_NOW", "HOME")]
        assert [pool.result(one) for one in seen] == ["1", None]
        assert pool.result(pool.submit(os.getcwd)) == str(tmp_path)
