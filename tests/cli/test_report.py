"""`beholder report`: the page of a run, made again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path


def test_the_report_is_made_again_from_a_run(invoke: Callable[..., str], audit: list[object], tmp_path: Path):
    invoke(*audit, "--quiet")
    page = tmp_path / "run" / "report.html"
    page.unlink()
    invoke("report", tmp_path / "run")
    assert page.is_file()
    assert json.loads(invoke("report", tmp_path / "run", "--json"))["results"]
