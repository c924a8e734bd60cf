"""Charts as files for a paper."""

from __future__ import annotations

import re
from pathlib import Path

from beholder.core.files import write_whole
from beholder.report.drawing import png, svg
from beholder.report.report import Report

LONGEST = 120
"""Characters of a file's name; the end tells charts apart."""


def save_charts(report: Report, folder: Path) -> list[Path]:
    """Every chart as `<study>-<dataset>-<name>.svg` and `.png`, for a paper; returns the paths."""
    paths = []
    for section in report.sections:
        for figure in section.figures:
            name, spec = f"{section.study.name}-{section.dataset}-{figure.name}", figure.paper()
            stem = re.sub(r"[^\w.-]+", "-", name)[-LONGEST:]
            for ending, data in (("svg", svg(spec).encode()), ("png", png(spec))):
                paths.append(folder / f"{stem}.{ending}")
                write_whole(paths[-1], data)
    return paths
