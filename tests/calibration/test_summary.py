"""What is promised of every claim, and where it is not kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from beholder.calibration.claims import (
    OVERLOOKED,
    SCHEMA,
    TOO_MANY,
    TOO_NARROW,
    WIDER,
    CalibrationOptions,
    Cell,
    calibrate,
    chosen_cells,
    doubtful_cells,
    judged,
    promises,
    read_calibration,
)
from beholder.core.errors import MissingData, UnknownName
from beholder.core.read import write_table
from beholder.studies.worlds import NOISE, SMALLEST, TWO_LEVELS, UNFAIR, WORLDS

KEPT, SPREAD = "", "a small cell of other spread"


def counted(world: str = NOISE, design: str = "30 + 30", claim: str = "gaps.gap", **counts: int) -> pl.DataFrame:
    row: dict[str, Any] = {**dict.fromkeys(SCHEMA, 0), "study": "gaps", "design": design, "world": world}
    return pl.DataFrame([{**row, "claim": claim, **counts, "worlds": 1000}])


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ({"null": 1000, "alarm": 60}, KEPT),
        ({"null": 1000, "alarm": 61}, TOO_MANY),
        ({"null": 1000, "alarm": 80, "design": SPREAD, "world": TWO_LEVELS}, KEPT),
        ({"null": 1000, "alarm": 81, "design": SPREAD, "world": TWO_LEVELS}, TOO_MANY),
        ({"null": 1000, "alarm": 61, "design": SPREAD}, TOO_MANY),
        ({"null": 9, "alarm": 9}, KEPT),
        ({"null": 1000, "interval": 1000, "missed": 70}, KEPT),
        ({"null": 1000, "interval": 1000, "missed": 71}, TOO_NARROW),
        ({"null": 1000, "interval": 1000, "missed": 19}, WIDER),
        ({"null": 1000, "alarm": 80, "interval": 1000, "missed": 80}, f"{TOO_MANY}, {TOO_NARROW}"),
        ({"true": 1000, "found": 100}, KEPT),
        ({"true": 1000, "found": 1000, "world": UNFAIR}, KEPT),
        ({"true": 1000, "found": 999, "world": UNFAIR}, OVERLOOKED),
        ({"world": UNFAIR}, OVERLOOKED),
        ({"true": 1000, "found": 0, "world": UNFAIR, "claim": "gaps.other"}, KEPT),
        ({}, KEPT),
    ],
)
def test_counts_are_held_against_the_promise(counts: dict[str, Any], verdict: str):
    assert judged(counted(**counts))["verdict"].to_list() == [verdict]


def test_cells_that_break_a_promise_are_drawn_again_and_named():
    table = judged(pl.concat([counted(null=1000, alarm=70), counted(null=1000, alarm=10, world=TWO_LEVELS)]))
    assert doubtful_cells(table) == [Cell("gaps", "30 + 30", NOISE)]
    alarms, intervals, unfair = promises(table)
    assert alarms.sentence == "1 of 2 cells do."
    assert alarms.broken == ["gaps.gap · noise · 30 + 30: 7.0 % of 1,000"]
    assert not intervals.broken
    assert not unfair.broken


def test_every_world_and_design_is_tried_and_the_smallest_with_an_unfair_model_alone():
    cells = chosen_cells(["gaps"])
    assert len(cells) == 6 * len(WORLDS) + 1
    assert [cell.world for cell in cells if cell.design == SMALLEST] == [UNFAIR]
    assert chosen_cells(["gaps"], ["5 + 40"], [NOISE]) == [Cell("gaps", "5 + 40", NOISE)]
    with pytest.raises(UnknownName, match="Did you mean 'noise'"):
        chosen_cells([], [], ["noises"])


def test_a_cell_in_doubt_has_the_numbers_of_the_larger_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cells = [Cell("gaps", "30 + 30", world) for world in (NOISE, TWO_LEVELS)]
    monkeypatch.setattr("beholder.calibration.claims.doubtful_cells", lambda table: cells[:1])
    table = calibrate([*cells, Cell("gaps", SMALLEST, UNFAIR)], tmp_path, CalibrationOptions(worlds=3, again=5))
    drawn = {(row["world"]): row["worlds"] for row in table.filter(claim="gaps.gap").to_dicts()}
    assert drawn == {UNFAIR: 3, TWO_LEVELS: 3, NOISE: 5}


def test_of_two_files_the_later_one_counts_for_a_study(tmp_path: Path):
    for name, alarm in (("a", 1), ("b", 2)):
        write_table(judged(counted(null=1000, alarm=alarm)), tmp_path / name, "calibration")
    read = read_calibration([tmp_path / "a" / "calibration.parquet", tmp_path / "b"])
    assert read["alarm"].to_list() == [2]
    with pytest.raises(MissingData):
        read_calibration([tmp_path / "c"])
