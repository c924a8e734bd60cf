"""`beholder replicate`: verdicts for every printed number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.errors import UsageError
from beholder.core.results import Row, results_table
from beholder.run import Run


def test_a_printed_name_needs_a_run_to_stand_for(invoke: Callable[..., str]):
    with pytest.raises(UsageError, match="replicate RUN --as NAME"):
        invoke("replicate", "--as", "ViT-B/32")


def test_the_command_prints_verdicts_and_leaves_a_page(tmp_path: Path):
    done = CliRunner().invoke(app, ["replicate", "--out", str(tmp_path), "--json"])
    printed = json.loads(done.stdout)
    assert printed["verdicts"]["equal within rounding"] == 135
    assert (tmp_path / "replication.html").is_file()


def test_as_names_one_of_the_studies_models(tmp_path: Path):
    row = Row("apa.bias_ratio", 1.0, 100, "ratio", subset="actors", low=0.9, high=1.1)
    Run(results_table([row], benchmark="apa", model="imported", dataset="apa")).save(tmp_path)
    CliRunner().invoke(app, ["replicate", str(tmp_path), "--as", "RN101"], catch_exceptions=False)
    cells = pl.read_parquet(tmp_path / "ledger.parquet").filter(model="RN101", metric="apa.bias_ratio", subset="actors")
    assert cells["verdict"].to_list() == ["within interval"]


def test_one_printed_name_does_not_stand_for_two_models(two_models: Run, tmp_path: Path):
    two_models.save(tmp_path)
    with pytest.raises(UsageError, match="--as names one model, but this run has 2: clip, siglip"):
        CliRunner().invoke(app, ["replicate", str(tmp_path), "--as", "RN101"], catch_exceptions=False)
