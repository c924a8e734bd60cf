"""Every value of every study is what it was, whatever becomes of its null, its bounds and its verdict."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runs import COMMANDS, HERE, PLACE, run

KEY = [*PLACE, "group"]


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_values_are_what_they_were(name: str, tmp_path: Path):
    before = pl.read_parquet(HERE / f"{name}.parquet").select(*KEY, "value", "n").sort(*KEY, "value")
    now = run(name, tmp_path).select(*KEY, "value", "n").sort(*KEY, "value")
    assert_frame_equal(before, now, rel_tol=1e-6, abs_tol=1e-9)
