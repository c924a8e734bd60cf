"""`beholder export`: to a file or to standard output."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder._run import Run
from beholder.cli import app
from beholder.report.exports import FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_the_command_writes_to_a_file_or_to_standard_output(name: str, apa_run: Run, tmp_path: Path) -> None:
    apa_run.save(tmp_path)
    printed = CliRunner().invoke(app, ["export", str(tmp_path), "--to", name])
    assert printed.exit_code == 0
    assert "politicians" in printed.stdout
    written = CliRunner().invoke(app, ["export", str(tmp_path), "--to", name, "--out", str(tmp_path / "a")])
    assert written.exit_code == 0
    assert (tmp_path / "a").read_text() == printed.stdout
