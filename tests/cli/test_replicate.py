"""`beholder replicate`: verdicts for every printed number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from beholder._run import Run
from beholder.cli import app
from beholder.core.errors import UsageError
from beholder.core.results import Row, results_table


def test_a_printed_name_needs_a_run_to_stand_for(invoke: Callable[..., str]):
    with pytest.raises(UsageError, match="replicate RUN --as NAME"):
        invoke("replicate", "--as", "ViT-B/32")


def test_the_command_prints_verdicts_and_leaves_a_page(tmp_path: Path):
    done = CliRunner().invoke(app, ["replicate", "--out", str(tmp_path), "--json"])
    printed = json.loads(done.stdout)
    assert printed["verdicts"]["equal within rounding"]["run"] == 0
    assert printed["verdicts"]["equal within rounding"]["printed tables"] > 100
    assert (tmp_path / "replication.html").is_file()


def test_the_summary_has_a_column_for_what_the_run_measured(tmp_path: Path):
    row = Row("apa.identity_given_image", 0.85, 100, "probability", subset="senate", low=0.8, high=0.9)
    Run(results_table([row], study="apa", model="imported", dataset="apa")).save(tmp_path)
    done = CliRunner().invoke(app, ["replicate", str(tmp_path), "--as", "RN50"], catch_exceptions=False)
    assert "this run" in done.stdout
    lines = [re.findall(r"[a-z]+|\d+", line) for line in done.stdout.splitlines()]
    assert ["within", "interval", "1", "0", "0"] in lines
    assert ["equal", "within", "rounding", "0", "134", "0"] in lines
    alone = CliRunner().invoke(app, ["replicate", "--out", str(tmp_path)], catch_exceptions=False)
    assert "this run" not in alone.stdout


def test_as_names_one_of_the_studies_models(tmp_path: Path):
    row = Row("apa.bias_ratio", 1.0, 100, "ratio", subset="actors", low=0.9, high=1.1)
    Run(results_table([row], study="apa", model="imported", dataset="apa")).save(tmp_path)
    CliRunner().invoke(app, ["replicate", str(tmp_path), "--as", "SigLIP-p16-224"], catch_exceptions=False)
    cells = pl.read_parquet(tmp_path / "ledger.parquet").filter(
        model="SigLIP-p16-224", metric="apa.bias_ratio", subset="actors"
    )
    assert cells["verdict"].to_list() == ["within interval"]


def test_one_printed_name_does_not_stand_for_two_models(two_models: Run, tmp_path: Path):
    two_models.save(tmp_path)
    with pytest.raises(UsageError, match="--as names one model, but this run has 2: clip, siglip"):
        CliRunner().invoke(app, ["replicate", str(tmp_path), "--as", "RN101"], catch_exceptions=False)
