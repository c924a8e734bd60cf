"""Killed at random moments and started again, a run ends as if nothing had happened, and does nothing twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

SCRIPT = Path(__file__).with_name("slow_audit.py")
KILLS = 24
IMAGES = 240


def start(folder: Path, place: Path, pause: float = 0.002) -> subprocess.Popen[bytes]:
    arguments = [folder, place / "store", place / "out", place / "log", pause]
    return subprocess.Popen([sys.executable, SCRIPT, *map(str, arguments)])


def stored(place: Path) -> set[str]:
    """Keys in finished blocks."""
    blocks = (place / "store").glob("*/images/*.parquet")
    return {key for block in blocks for key in pq.read_table(block, columns=["key"])["key"].to_pylist()}


def asked(place: Path) -> Counter[str]:
    """How often the model was asked about each image."""
    log = place / "log"
    return Counter(log.read_text().split()) if log.exists() else Counter()


@pytest.mark.slow
def test_a_run_killed_again_and_again_equals_an_undisturbed_one(people, tmp_path: Path):
    folder = people(IMAGES)
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    for place in (undisturbed, disturbed):
        place.mkdir()
    began = time.monotonic()
    assert start(folder, undisturbed).wait() == 0
    whole = time.monotonic() - began

    chance, kills, lost = random.Random(4), 0, 0
    for attempt in range(200):
        finished, before = len(stored(disturbed)), sum(asked(disturbed).values())
        process = start(folder, disturbed, pause=0.004 if attempt < KILLS else 0.0)
        try:
            process.wait(whole * chance.uniform(0.3, 0.9) if kills < KILLS else None)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            done = sum(asked(disturbed).values()) - before
            lost += done - (len(stored(disturbed)) - finished)
            continue
        if kills >= KILLS:
            break
        for block in (disturbed / "store").glob("*/images/*.parquet"):
            block.unlink()  # finished before enough kills: begin anew
        (disturbed / "log").unlink()
        lost = 0
    assert kills >= 20
    times = asked(disturbed)
    assert len(times) == IMAGES
    assert sum(times.values()) == IMAGES + lost  # only rows that no finished block held were asked for again
    for name in ("results.parquet", "results.csv"):
        assert (disturbed / "out" / name).read_bytes() == (undisturbed / "out" / name).read_bytes()


@pytest.mark.slow
def test_two_processes_fill_one_store_without_harm(people, tmp_path: Path):
    folder = people(IMAGES)
    alone, together = tmp_path / "alone", tmp_path / "together"
    for place in (alone, together):
        place.mkdir()
    assert start(folder, alone, 0.0).wait() == 0
    both = [start(folder, together, 0.001) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert len(stored(together)) == IMAGES
    assert not list((together / "store").rglob("*.part"))
    assert (together / "out" / "results.csv").read_bytes() == (alone / "out" / "results.csv").read_bytes()
