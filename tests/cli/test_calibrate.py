"""`beholder calibrate`: a table and a page, drawn or made again."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from gaps_study import GAPS
from typer.testing import CliRunner

from beholder.cli import app
from beholder.studies import STUDIES


def test_the_command_leaves_a_table_and_a_page_that_can_be_made_again(tmp_path: Path):
    STUDIES.add("gaps", GAPS)
    words = ["calibrate", "-s", "gaps", "--design", "30 + 30", "--world", "noise", "--worlds", "4", "--workers", "1"]
    done = CliRunner().invoke(app, [*words, "--again", "0", "--json", "-o", str(tmp_path)], catch_exceptions=False)
    said = json.loads(done.stdout)
    assert {cell["claim"] for cell in said["cells"]} == {"gaps.gap", "gaps.headline", "gaps.paper"}
    assert len(said["promises"]) == 3
    assert pl.read_parquet(tmp_path / "calibration.parquet")["worlds"].unique().to_list() == [4]
    again = ["calibrate", "--from", str(tmp_path), "-o", str(tmp_path / "again")]
    done = CliRunner().invoke(app, again, catch_exceptions=False)
    assert "A claim is called in at most 6 % of worlds" in done.stdout
    assert (tmp_path / "again" / "calibration.html").read_text() == (tmp_path / "calibration.html").read_text()
