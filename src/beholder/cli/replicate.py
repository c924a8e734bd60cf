"""`beholder replicate`: compares every printed number of the studies with ours."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import typer

from beholder.cli.console import err, out, say_json
from beholder.core.errors import UsageError


def replicate_command(
    run: Path = typer.Argument(
        None, help="A run folder. Without it only the printed tables are checked: no model, no data."
    ),
    output: Path = typer.Option(
        None, "--out", "-o", help="Folder for the ledger and its page. Default: RUN, or beholder-replication."
    ),
    printed_as: str = typer.Option(
        None, "--as", help="The name that the studies print for the one model of the run (ViT-B/32 …)."
    ),
    data: Path = typer.Option(
        None,
        "--data",
        envvar="BEHOLDER_DATA",
        help="Folder of the data sets. The sizes that the papers print are counted in it again.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the ledger and the checks as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No summary."),
) -> None:
    """Compare every published number with ours, with difference, interval and verdict; check the printed tables."""
    # Imported here so that other commands start without it.
    from beholder._run import load_run
    from beholder.cli.listing import show
    from beholder.published.ledger import as_records, consistency, counts, ledger, printed_name
    from beholder.report.replication import write_replication

    if printed_as and not run:
        raise UsageError("--as needs a run: beholder replicate RUN --as NAME.")
    results = _renamed(load_run(run).results, printed_as) if run else None
    printed = {model: printed_name(model) for model in (results["model"].unique() if results is not None else [])}
    cells, checks = ledger(results, data), consistency()
    models = sorted(name for name in printed.values() if name)
    page = write_replication(cells, checks, output or run or Path("beholder-replication"), models=models)
    if as_json:
        say_json({"verdicts": counts(cells), "cells": cells.to_dicts(), "consistency": as_records(checks)})
        return
    if not quiet:
        show(_counted(counts(cells), run is not None), as_json=False)
        for check in checks:
            if not check.holds:
                out.print(f"{check.study}, {check.table}: {check.finding}", markup=False)
    for model in (model for model, name in printed.items() if not name):
        err.print(f"{model} is in none of the printed tables. If it is one of their models: --as NAME.", markup=False)
    if not quiet:
        err.print(f"Page: {page.resolve()}", markup=False, soft_wrap=True)


def _counted(verdicts: dict[str, dict[str, int]], with_run: bool) -> list[dict[str, object]]:
    """A line for each verdict: what the run measured apart from what follows from printed tables and from data."""
    named = {"run": "this run", "printed tables": "printed tables", "data": "data", "none": "no value of ours"}
    there = [origin for origin in named if any(each[origin] for each in verdicts.values())]
    used = [origin for origin in named if origin in there or (origin == "run" and with_run)]
    return [{"verdict": name, **{named[each]: numbers[each] for each in used}} for name, numbers in verdicts.items()]


def _renamed(results: pl.DataFrame, name: str | None) -> pl.DataFrame:
    """The run's rows with the printed name of its model."""
    # Imported here so that other commands start without it.
    from beholder.models.catalog import find_model

    if name is None:
        return results
    if results["model"].n_unique() != 1:
        listed = ", ".join(results["model"].unique().sort())
        raise UsageError(f"--as names one model, but this run has {results['model'].n_unique()}: {listed}.")
    return results.with_columns(model=pl.lit(find_model(name).name))
