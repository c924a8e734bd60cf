"""Results of every study are what they were: the same rows, in any order, with the same numbers."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from runs import COMMANDS, HERE, run

KEY = ["benchmark", "model", "dataset", "metric", "subset", "group", "concept", "template"]


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_results_are_what_they_were(name: str, shared: Path, tmp_path: Path) -> None:
    before, now = pl.read_parquet(HERE / f"{name}.parquet"), run(name, tmp_path)
    assert_frame_equal(before.sort(KEY), now.sort(KEY), rel_tol=1e-6, abs_tol=1e-9)
