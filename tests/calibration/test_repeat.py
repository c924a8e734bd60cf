"""Repetitions: seeded, in any number of processes, and continued where they stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from beholder.calibration import claims as repeating
from beholder.calibration.claims import Block, Cell, blocks_of, repeat, simulate

CELL = Cell("gaps", "5 + 40", "noise")
ASKED: dict[str, Any] = {"worlds": 6, "seed": 1, "workers": 1}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeating, "BLOCK", 3)


def test_a_world_depends_on_its_number_alone():
    def counts(start: int, stop: int) -> pl.DataFrame:
        made = simulate(Block(CELL, 3, start, stop, Path()))
        return pl.DataFrame([{"claim": claim, **said._asdict()} for claim, said in made.items()])

    parts = pl.concat([counts(0, 4), counts(4, 6)]).group_by("claim", maintain_order=True).sum()
    assert parts.equals(counts(0, 6))


def test_first_blocks_of_all_cells_come_first():
    other = CELL._replace(world="ties")
    assert [(block.cell, block.start) for block in blocks_of([CELL, other], 5, 1, Path())] == [
        (CELL, 0),
        (other, 0),
        (CELL, 3),
        (other, 3),
    ]


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fresh = repeat([CELL], tmp_path / "a", **ASKED)
    done: list[Block] = []

    def stop_after_one(block: Block) -> int:
        if done:
            raise KeyboardInterrupt
        done.append(block)
        return work(block)

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
