"""Charts as files for a paper."""

from __future__ import annotations

import re
from pathlib import Path

import vl_convert

from beholder.core.files import write_whole
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
            for ending, data in (
                ("svg", vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).encode()),
                ("png", vl_convert.vegalite_to_png(spec, scale=3, allowed_base_urls=[])),
            ):
                paths.append(folder / f"{stem}.{ending}")
                write_whole(paths[-1], data)
    return paths
