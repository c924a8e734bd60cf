"""`beholder calibrate`: the instrument against a standard whose true value is known."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from beholder.cli.console import bar, err, out, say_json
from beholder.cli.options import writable


def calibrate_command(
    metric: list[str] = typer.Option(
        None, "--metric", "-m", help="A metric, or a study for all of its metrics (repeatable). Default: all."
    ),
    repetitions: int = typer.Option(1000, min=20, help="Worlds drawn for each trial; trials of power use fewer."),
    seed: int = typer.Option(20260801, help="Equal seeds give equal numbers, on any number of processes."),
    processes: int = typer.Option(None, min=1, help="Number of processes. Default: one per core."),
    output: Path = typer.Option(
        Path("beholder-calibration"), "--out", "-o", help="Folder for the page, the table and finished blocks."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the table as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no summary."),
) -> None:
    """Test every metric on worlds of known truth: false alarms, power, bias and coverage.

    You can stop it with Ctrl-C at any time. The same command continues where it stopped.
    """
    # Imported here so that other commands start without it.
    from beholder.calibration.experiments import chosen_experiments
    from beholder.calibration.repeat import repeat, repetitions_of
    from beholder.calibration.summary import calibration_table, summarise
    from beholder.calibration.weaknesses import weaknesses
    from beholder.core.progress import silent
    from beholder.report.calibration import promises, write_calibration

    writable(output, "--out")
    chosen = chosen_experiments(metric or [])
    total = sum(repetitions_of(each, repetitions) for each in chosen)
    with silent("", total, 0) if quiet else bar("Calibrating", total, 0, unit="worlds") as advance:
        outcomes = repeat(
            chosen,
            output,
            repetitions=repetitions,
            seed=seed,
            workers=processes or os.cpu_count() or 1,
            advance=advance,
        )
    summaries = summarise(chosen, outcomes)
    page = write_calibration(summaries, output, settings=f"up to {repetitions:,} repetitions, seed {seed}")
    if as_json:
        said = [weakness._asdict() for weakness in weaknesses(summaries)]
        say_json({"results": calibration_table(summaries).to_dicts(), "weaknesses": said})
    elif not quiet:
        for promise in promises(summaries):
            out.print(f"{'Kept' if promise.kept else 'Not kept'}: {promise.headline}. {promise.sentence}", markup=False)
        for weakness in weaknesses(summaries):
            out.print(f"{weakness.title}. {weakness.sentence}", markup=False)
    if not quiet:
        err.print(f"Page: {page.resolve()}", markup=False, soft_wrap=True)
