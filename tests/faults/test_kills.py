"""Killed at any moment and started again, an audit ends as if nothing had happened, and asks no finished image twice.

FAULT_KILLS=500 is the long form (`make trust`).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

HERE = Path(__file__).parent
KILLS = int(os.environ.get("FAULT_KILLS", "10"))
IMAGES = 60
KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def victim() -> Iterator[Callable[..., list[int]]]:
    """Runs jobs at the same time, each in a process of its own; how they ended."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, HERE / "victim.py"],
        env={**os.environ, **single, "PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run(*jobs: dict[str, object]) -> list[int]:
        process.stdin.write(json.dumps(jobs) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    with process:
        yield run


def job(folder: Path, place: Path, **how: object) -> dict[str, object]:
    place.mkdir(exist_ok=True)
    paths = {name: str(place / name) for name in ("store", "out", "log")}
    return {
        "folder": str(folder),
        **paths,
        "pause": 0.0,
        "processes": 0,
        "kill_at": -1,
        "kill_on": "",
        "kill_after": None,
        **how,
    }


def stored(place: Path) -> set[str]:
    """Keys in finished blocks."""
    blocks = (place / "store").glob("*/images/*.parquet")
    return {key for block in blocks for key in pq.read_table(block, columns=["key"])["key"].to_pylist()}


def asked(place: Path) -> Counter[str]:
    """How often the model was asked about each image."""
    log = place / "log"
    return Counter(log.read_text().split()) if log.exists() else Counter()


def same_results(one: Path, two: Path) -> bool:
    names = ("results.parquet", "results.csv", "findings.json")
    return all((one / "out" / name).read_bytes() == (two / "out" / name).read_bytes() for name in names)


class Chase:
    """An audit that is killed and started again and again; counts what was lost."""

    def __init__(self, victim: Callable[..., list[int]], folder: Path, place: Path, processes: int = 0) -> None:
        self._victim, self._folder, self.place, self._processes = victim, folder, place, processes
        self.kills = self.lost = 0

    def go(self, **how: object) -> bool:
        """Whether it came through."""
        finished, before = len(stored(self.place)), sum(asked(self.place).values())
        (code,) = self._victim(job(self._folder, self.place, processes=self._processes, **how))
        assert code in (0, KILLED)
        if code == KILLED:
            self.kills += 1
            done = sum(asked(self.place).values()) - before
            self.lost += done - (len(stored(self.place)) - finished)
        return code == 0

    def check(self, undisturbed: Path) -> None:
        """Through at last: nothing is lost, doubled or changed, and only unfinished rows were asked for again."""
        assert self.go()
        times = asked(self.place)
        assert len(times) == IMAGES
        assert sum(times.values()) == IMAGES + self.lost
        assert same_results(self.place, undisturbed)
        assert not list(self.place.rglob("*.part"))


@pytest.mark.slow
@pytest.mark.parametrize("processes", [0, 2], ids=["threads", "worker processes"])
def test_an_audit_killed_again_and_again_equals_an_undisturbed_one(
    processes: int, victim: Callable[..., list[int]], people: Callable[..., Path], tmp_path: Path
):
    """Chases of about ten kills each, at random operations of the store's disk and after random times."""
    folder, undisturbed, rng = people(IMAGES), tmp_path / "undisturbed", random.Random(processes)
    assert victim(job(folder, undisturbed, processes=processes)) == [0]
    operations = len((undisturbed / "out" / "operations.txt").read_text().split("\n"))
    kills, killed, wanted = 0, 0, KILLS if not processes else max(2, KILLS // 10)
    while kills < wanted:
        chase = Chase(victim, folder, tmp_path / f"after {kills}", processes)
        for _ in range(min(10, wanted - kills)):
            moment = {"kill_at": rng.randrange(operations)}
            if rng.random() < 0.5 or processes:
                moment = {"kill_after": rng.uniform(0.02, 0.5 if not processes else 6.0), "pause": 0.002}
            if chase.go(**moment):
                break
        kills += max(1, chase.kills)
        killed += chase.kills
        chase.check(undisturbed)
    print(f"{killed} kills: nothing lost, doubled or changed")


@pytest.mark.slow
def test_an_audit_killed_at_every_kind_of_operation_loses_only_unfinished_rows(
    victim: Callable[..., list[int]], people: Callable[..., Path], tmp_path: Path
):
    """Opening, writing, flushing, renaming …: at the second of each in turn, each time where the last one stopped."""
    folder, undisturbed = people(IMAGES), tmp_path / "undisturbed"
    assert victim(job(folder, undisturbed)) == [0]
    done = Counter((undisturbed / "out" / "operations.txt").read_text().split("\n"))
    chase = Chase(victim, folder, tmp_path / "disturbed")
    kinds = [operation for operation, count in done.items() if count > 8]
    for operation in kinds:
        chase.go(kill_at=1, kill_on=operation)
    assert chase.kills == len(kinds) > 5
    chase.check(undisturbed)


@pytest.mark.slow
def test_two_processes_fill_one_store_without_harm(
    victim: Callable[..., list[int]], people: Callable[..., Path], tmp_path: Path
):
    folder, alone, together = people(IMAGES), tmp_path / "alone", tmp_path / "together"
    assert victim(job(folder, alone)) == [0]
    both = [job(folder, together, out=str(tmp_path / name / "out"), pause=0.001) for name in ("one", "two")]
    assert victim(*both) == [0, 0]
    assert len(stored(together)) == IMAGES
    assert not list((together / "store").rglob("*.part"))
    assert all(same_results(tmp_path / name, alone) for name in ("one", "two"))
