"""`beholder calibrate`: a table and a page."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from beholder.cli import app


@pytest.mark.slow
def test_the_command_leaves_a_table_and_a_page(tmp_path: Path):
    words = [
        "calibrate",
        "-m",
        "mean over prompts",
        "--repetitions",
        "60",
        "--processes",
        "1",
        "--json",
        "-o",
        str(tmp_path),
    ]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert len(json.loads(done.stdout)["results"]) == 6
    assert (tmp_path / "calibration.html").is_file()
    assert pl.read_parquet(tmp_path / "calibration.parquet")["n"].unique().to_list() == [60]
