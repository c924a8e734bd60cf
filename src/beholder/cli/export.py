"""`beholder export`: a run's findings and tables for a paper, a pull request or a model's card."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

import typer

from beholder.cli import options as common
from beholder.cli.console import err


class Format(StrEnum):
    """What it is for."""

    markdown = "markdown"
    latex = "latex"
    card = "card"


def export_command(
    folder: common.RunFolder = common.LATEST,
    to: Format = typer.Option(
        Format.markdown, help="markdown: findings and tables; latex: tables with booktabs; card: for a model's card."
    ),
    file: Path = typer.Option(None, "--out", "-o", help="A file to write. Default: standard output."),
) -> None:
    """Write a run's findings and tables as Markdown, as LaTeX, or as a section of a model card.

    Charts as SVG and PNG: `beholder report RUN --figures FOLDER`. All numbers: results.csv in the run folder.
    """
    # Imported here so that other commands start without it.
    from beholder.core.files import write_whole
    from beholder.report.exports import FORMATS
    from beholder.run import load_run

    text = FORMATS[to](load_run(folder).report)
    if file is None:
        sys.stdout.write(text)
        return
    write_whole(file, text.encode("utf-8", "replace"))
    err.print(f"Written: {file.resolve()}", markup=False, soft_wrap=True)
