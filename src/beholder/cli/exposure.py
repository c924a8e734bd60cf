"""`beholder exposure`: how often captions name the people whom a benchmark shows."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import typer

from beholder.cli.audit import store_folder
from beholder.cli.console import bar, err, out, say_json
from beholder.cli.group import writable


def exposure_command(
    captions: list[Path] = typer.Argument(
        ..., help="Caption files: text (a caption a line), TSV, CSV, JSONL, also .gz; Parquet; COCO's captions (.json)."
    ),
    data: Path = typer.Option(
        None, "--data", envvar="BEHOLDER_DATA", help="Folder that holds APA (apa/ …), whose names are counted."
    ),
    column: str = typer.Option(
        None,
        help="The column of the captions; a number where a TSV or CSV has no header. Default: caption, TEXT or text.",
    ),
    run: Path = typer.Option(None, "--run", help="Folder of an APA audit: sets its identity scores beside the counts."),
    output: Path = typer.Option(Path("beholder-exposure"), "--out", "-o", help="Run folder for results and report."),
    name: str = typer.Option(None, help="What to call the captions. Default: their file's name."),
    people: bool = typer.Option(
        False, "--people", help="Also write people.csv: the count of every person. Not for publication."
    ),
    store: Path = typer.Option(
        None, envvar="BEHOLDER_STORE", help="With --run: where its scores are kept. Default: ~/.cache/beholder."
    ),
    draws: int = typer.Option(2000, min=100, help="Bootstrap draws behind every interval."),
    seed: int = typer.Option(20260801, help="Seed of the bootstrap."),
    as_json: bool = typer.Option(False, "--json", help="Print the results as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no summary."),
) -> None:
    """Count how often captions name people and say occupations, by gender, and beside what a model knows of them."""
    from beholder.core.progress import silent
    from beholder.report.terminal import print_summary
    from beholder.studies.exposure.study import ExposureOptions, expose
    from beholder.studies.study import MeasureOptions

    options = ExposureOptions(
        out=writable(output, "--out"),
        store=store_folder(store),
        data=data,
        column=column,
        name=name,
        run=run,
        people=people,
        measure=MeasureOptions(draws=draws, seed=seed),
        progress=silent if quiet else partial(bar, unit="MB"),
        command=sys.argv[1:],
    )
    made = expose(captions, options)
    if as_json:
        say_json({"results": made.results.to_dicts(), "left_out": made.record.left_out})
    elif not quiet:
        print_summary(made, out)
    if not quiet:
        err.print(f"Report: {(output / 'report.html').resolve()}", markup=False, soft_wrap=True)
