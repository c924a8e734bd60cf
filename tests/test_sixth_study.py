"""A sixth study is one file: it gets its own chapter, chart, finding, planning line, trial and printed number."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.catalog import loaded_plugins
from beholder.studies import STUDIES

PLUGIN = Path(__file__).parents[1] / "docs" / "examples" / "indecision.py"


def beholder(*arguments: object, folder: Path) -> str:
    """What the command prints, run with the plug-in; what that adds to Beholder is gone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(STUDIES, "_things", dict(STUDIES._things))
        patch.setattr(STUDIES, "_added", set(STUDIES._added))
        patch.setenv("BEHOLDER_STORE", str(folder / "store"))
        before, modules = len(loaded_plugins), set(sys.modules)
        try:
            done = CliRunner().invoke(app, ["--plugin", str(PLUGIN), *map(str, arguments)], catch_exceptions=False)
        finally:
            del loaded_plugins[before:]
            for name in set(sys.modules) - modules:
                if getattr(sys.modules[name], "__file__", None) == str(PLUGIN):
                    del sys.modules[name]
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indecision")
    words = ("audit", "null", "-s", "indecision", "--limit", 10, "--draws", 200, "--out", folder / "run", "-q")
    beholder(*words, folder=folder)
    return folder / "run"


def test_it_takes_no_more_than_150_lines():
    assert len(PLUGIN.read_text().splitlines()) <= 150


@pytest.mark.slow
def test_it_has_a_chapter_a_chart_and_a_finding(run: Path):
    page = (run / "report.html").read_text()
    assert "Indecision: torn between occupations" in page
    assert "How torn the model is" in page
    assert "Indecision lies between" in page
    (finding,) = json.loads((run / "findings.json").read_text())["findings"]
    assert finding["question"] == "Is the model more torn about some people than about others?"
    assert finding["metric"] == "indecision.gap"


@pytest.mark.slow
def test_its_page_is_drawn_again_without_the_plug_in(run: Path):
    code = "from beholder.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, "report", str(run), "-q"], check=True, capture_output=True)
    assert "How torn is the model between the occupations" in (run / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("quick_plans")
def test_it_has_a_planning_line_a_trial_and_a_printed_number(run: Path, tmp_path: Path):
    (line,) = json.loads(beholder("plan", "indecision", "--json", folder=tmp_path))
    assert line["subset"] == "indecision.gap"
    calibrate = ("calibrate", "-s", "indecision", "--worlds", 2, "--again", 0, "--workers", 1, "--json")
    said: dict[str, Any] = json.loads(beholder(*calibrate, "--out", tmp_path / "cal", folder=tmp_path))
    assert {cell["claim"] for cell in said["cells"]} == {"indecision.gap", "indecision.torn"}
    assert said["promises"][-1]["broken"] == [], "a wholly unfair model is found"
    beholder("replicate", run, "--as", "ViT-B/32", "--out", tmp_path / "ledger", "-q", folder=tmp_path)
    ledger = pl.read_parquet(tmp_path / "ledger" / "ledger.parquet")
    assert ledger.filter(metric="indecision.evenness")["printed"].to_list() == [0.5]
