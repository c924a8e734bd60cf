"""`beholder gate`: a table for people, JSON for programs, and an exit status for pipelines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.run import Run


@pytest.fixture
def folder(apa_run: Run, tmp_path: Path) -> Path:
    apa_run.save(tmp_path)
    (tmp_path / "kept.toml").write_text("[[rule]]\nmetric = 'apa.bias_ratio'\nsubset = 'athletes'\nat_least = 0.8\n")
    (tmp_path / "broken.toml").write_text(
        "[[rule]]\nmetric = 'apa.bias_ratio'\nsubset = 'politicians'\nat_least = 0.8\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("rules", "status", "summary"), [("kept", 0, "Passes: 0 of 1"), ("broken", 1, "Stopped: 1 of 1")]
)
def test_the_exit_status_and_the_summary_follow_the_rules(folder: Path, rules: str, status: int, summary: str):
    result = CliRunner().invoke(app, ["gate", str(folder / f"{rules}.toml"), str(folder)])
    assert result.exit_code == status
    assert summary in result.stdout


def test_quiet_sets_only_the_exit_status(folder: Path):
    result = CliRunner().invoke(app, ["gate", str(folder / "broken.toml"), str(folder), "--quiet"])
    assert (result.exit_code, result.stdout) == (1, "")


def test_json_holds_every_verdict_with_its_row(folder: Path):
    result = CliRunner().invoke(app, ["gate", str(folder / "broken.toml"), str(folder), "--json"])
    answer = json.loads(result.stdout)
    assert not answer["passes"]
    (verdict,) = answer["verdicts"]
    assert (verdict["verdict"], verdict["stops"], verdict["row"]["value"]) == ("fails", True, 0.62)
