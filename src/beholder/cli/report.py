"""`beholder report`: the page of a run, made again."""

from __future__ import annotations

from pathlib import Path

import typer

from beholder.cli import options as common
from beholder.cli.console import err, out, say_json


def report_command(
    folder: common.RunFolder = common.LATEST,
    figures: Path = typer.Option(None, help="Also write the charts as SVG and PNG into this folder."),
    as_json: bool = typer.Option(False, "--json", help="Print the run's results as JSON instead of writing the page."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No summary."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Print every sentence and the tables."),
) -> None:
    """Rewrite report.html from a run folder and print its summary."""
    # Imported here so that other commands start without it.
    from beholder._run import load_run
    from beholder.report.drawing import save_charts
    from beholder.report.page import write_page
    from beholder.report.terminal import print_summary

    run = load_run(folder)
    if as_json:
        say_json(run.as_json())
        return
    run.save_findings(folder)
    page = write_page(run.report, folder)
    if figures:
        for path in save_charts(run.report, figures):
            err.print(f"Figure: {path}", markup=False, soft_wrap=True)
    if not quiet:
        print_summary(run.report, out, verbose=verbose)
    err.print(f"Report: {page.resolve()}", markup=False, soft_wrap=True)
