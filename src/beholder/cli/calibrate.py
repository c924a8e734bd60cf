"""`beholder calibrate`: every claim in worlds of which it is known what the model sees."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from beholder.cli.console import bar, err, out, say_json
from beholder.cli.options import writable


def calibrate_command(
    study: list[str] = typer.Option(None, "--study", "-s", help="A study (repeatable). Default: all."),
    design: list[str] = typer.Option(None, "--design", help="How many people, such as '5 + 40' (repeatable)."),
    world: list[str] = typer.Option(None, "--world", help="What the model sees, such as 'noise' (repeatable)."),
    worlds: int = typer.Option(400, min=1, help="Worlds drawn for each study, design and world."),
    again: int = typer.Option(4000, min=0, help="Worlds of cells that do not keep a promise at first. 0: none."),
    seed: int = typer.Option(20260801, help="Equal seeds give equal numbers, on any number of processes."),
    workers: int = typer.Option(None, "--workers", min=1, help="Number of processes. Default: one per core."),
    output: Path = typer.Option(
        Path("beholder-calibration"), "--out", "-o", help="Folder for the page, the table and finished blocks."
    ),
    made: list[Path] = typer.Option(
        None, "--from", help="Draw nothing: make the page from a calibration.parquet, or several (later ones count)."
    ),
    into: Path = typer.Option(None, "--into", help="Also put the tables into this Markdown page."),
    as_json: bool = typer.Option(False, "--json", help="Print the table as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no summary."),
) -> None:
    """Test every claim of every study in worlds of known truth: false alarms, intervals, unfair models.

    You can stop it with Ctrl-C at any time. The same command continues where it stopped.
    """
    # Imported here so that other commands start without it.
    from functools import partial

    from beholder.calibration.summary import CalibrationOptions, calibrate, chosen_cells, promises, read_calibration
    from beholder.core.progress import silent
    from beholder.report.calibration import write_calibration, write_into

    writable(output, "--out")
    if made:
        table = read_calibration(made)
    else:
        progress = silent if quiet else partial(bar, unit="worlds")
        options = CalibrationOptions(worlds, again, seed, workers or os.cpu_count() or 1, progress)
        table = calibrate(chosen_cells(study or (), design or (), world or ()), output, options)
    page = write_calibration(table, output)
    if into:
        write_into(into, table)
    if as_json:
        say_json({"cells": table.to_dicts(), "promises": [promise._asdict() for promise in promises(table)]})
    elif not quiet:
        for promise in promises(table):
            out.print(f"{promise.headline}: {promise.sentence}", markup=False, soft_wrap=True)
            for each in promise.broken:
                out.print(f"  not kept: {each}", markup=False, soft_wrap=True)
    if not quiet:
        err.print(f"Page: {page.resolve()}", markup=False, soft_wrap=True)
