"""Repetitions: seeded, in any number of processes, and continued where they stopped."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from beholder.calibration import repeat as repeating
from beholder.calibration.claims import Cell
from beholder.calibration.repeat import Block, _unstopped, blocks_of, repeat, simulate

CELL = Cell("gaps", "5 + 40", "noise")
ASKED: dict[str, Any] = {"worlds": 6, "seed": 1, "workers": 1}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeating, "BLOCK", 3)


def test_a_world_depends_on_its_number_alone(tmp_path: Path):
    def counts(start: int, stop: int) -> pl.DataFrame:
        names = ("claim", *repeating.SCHEMA)[1:]
        return pl.DataFrame(simulate(Block(CELL, 3, start, stop), tmp_path), schema=names[3:], orient="row")

    parts = pl.concat([counts(0, 4), counts(4, 6)]).group_by("claim", maintain_order=True).sum()
    assert parts.equals(counts(0, 6))


def test_first_blocks_of_all_cells_come_first():
    other = CELL._replace(world="ties")
    assert [(block.cell, block.start) for block in blocks_of([CELL, other], 5, 1)] == [
        (CELL, 0),
        (other, 0),
        (CELL, 3),
        (other, 3),
    ]


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fresh = repeat([CELL], tmp_path / "a", **ASKED)
    done: list[Block] = []

    def stop_after_one(block: Block, folder: Path) -> None:
        if done:
            raise KeyboardInterrupt
        done.append(block)
        work(block, folder)

    work = repeating._work
    monkeypatch.setattr(repeating, "_work", stop_after_one)
    with pytest.raises(KeyboardInterrupt):
        repeat([CELL], tmp_path / "b", **ASKED)
    assert len(list((tmp_path / "b" / "blocks").iterdir())) == 1
    done.clear()
    advanced: list[int] = []
    assert repeat([CELL], tmp_path / "b", **ASKED, advance=advanced.append).equals(fresh)
    assert (len(done), advanced) == (1, [3, 3])


def test_a_damaged_block_is_drawn_again(tmp_path: Path):
    whole = repeat([CELL], tmp_path, **ASKED)
    for path in (tmp_path / "blocks").iterdir():
        path.write_bytes(path.read_bytes()[:10])
    assert repeat([CELL], tmp_path, **ASKED).equals(whole)


def test_no_cells_give_an_empty_table(tmp_path: Path):
    assert repeat([], tmp_path, **ASKED).is_empty()


# Ctrl-C: one message from the parent, none from the workers


def test_workers_started_here_do_not_hear_ctrl_c_and_the_parent_does_again_afterwards():
    before = signal.getsignal(signal.SIGINT)
    with _unstopped():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_signals_are_left_alone():
    def seen() -> None:
        with _unstopped():
            handlers.append(signal.getsignal(signal.SIGINT))

    handlers: list[object] = []
    thread = threading.Thread(target=seen)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
