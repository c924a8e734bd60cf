"""The page: everything a run found, in one HTML file that needs no network."""

from __future__ import annotations

from html import escape
from pathlib import Path

from beholder.run import Run
from beholder.scores.store import write_whole


def write_report(run: Run, folder: Path) -> Path:
    """Write `report.html` beside the results and return its path."""
    path = folder / "report.html"
    write_whole(path, render(run).encode("utf-8"))
    return path


def render(run: Run) -> str:
    """The page as text; equal runs give equal pages."""
    head = "".join(f"<th>{escape(name)}</th>" for name in run.results.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{'—' if cell is None else escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in run.results.iter_rows()
    )
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Beholder</title>"
        f"<table><tr>{head}</tr>{rows}</table></html>"
    )
