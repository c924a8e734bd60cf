"""Charts as files for a paper."""

from __future__ import annotations

from pathlib import Path

from beholder._run import Run
from beholder.report.drawing import save_charts


def test_charts_are_saved_as_svg_and_png(custom_run: Run, tmp_path: Path) -> None:
    paths = save_charts(custom_run.report, tmp_path)
    assert [path.name for path in paths] == ["custom-photos-prompts-1.svg", "custom-photos-prompts-1.png"]
    assert paths[0].read_bytes().startswith(b"<svg")
    assert paths[1].read_bytes().startswith(b"\x89PNG")
