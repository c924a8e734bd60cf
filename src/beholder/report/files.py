"""Charts as files for a paper: SVG and PNG."""

from __future__ import annotations

import re
from pathlib import Path

from beholder.run import Run
from beholder.scores.store import write_whole


def save_charts(run: Run, folder: Path) -> list[Path]:
    """Every chart as `<benchmark>-<dataset>-<name>.svg` and `.png`; returns the paths."""
    import vl_convert

    from beholder.report.charts import figures

    paths = []
    for (benchmark, dataset), part in run.results.group_by(["benchmark", "dataset"], maintain_order=True):
        for figure in figures(part):
            stem = re.sub(r"[^\w.-]+", "-", f"{benchmark}-{dataset}-{figure.name}")
            spec = figure.paper()
            for ending, data in (
                ("svg", vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).encode()),
                ("png", vl_convert.vegalite_to_png(spec, scale=3, allowed_base_urls=[])),
            ):
                paths.append(folder / f"{stem}.{ending}")
                write_whole(paths[-1], data)
    return paths
