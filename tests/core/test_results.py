"""The tidy table: what is absent is null, both files say the same, and a damaged one is reported."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from beholder.core.errors import DataError, MissingData
from beholder.core.read import restored, write_table
from beholder.core.results import SCHEMA, Row, read_results, results_table

HOSTILE = 'a "quoted", <b>name</b>\nof two lines, Zoë'


def table() -> pl.DataFrame:
    rows = [
        Row("m.a", 0.25, 3, "probability", group=HOSTILE, low=float("nan"), high=float("inf"), chance=0.5),
        Row("m.a", None, 0, "probability", note="no image to measure"),
    ]
    return results_table(rows, study="m", model="=1+1", dataset="d")


def test_nan_and_infinite_are_null_and_a_missing_value_is_not_0():
    found = table()
    assert found["low"].to_list() == found["high"].to_list() == [None, None]
    assert found["value"].to_list() == [0.25, None]


def test_both_files_say_the_same(tmp_path: Path):
    write_table(table(), tmp_path, "results")
    assert_frame_equal(read_results(tmp_path), table())
    assert_frame_equal(restored(pl.read_csv(tmp_path / "results.csv", schema=SCHEMA)), table())


def test_a_column_that_came_later_is_null_in_an_older_run(tmp_path: Path):
    table().drop("chance").write_parquet(tmp_path / "results.parquet")
    assert_frame_equal(read_results(tmp_path), table().with_columns(chance=pl.lit(None, pl.Float64)))


def test_results_that_are_damaged_or_not_there_are_told(tmp_path: Path):
    with pytest.raises(MissingData, match=r"results\.parquet is not there"):
        read_results(tmp_path)
    write_table(table(), tmp_path, "results")
    path = tmp_path / "results.parquet"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match=r"results\.parquet cannot be read"):
        read_results(tmp_path)
