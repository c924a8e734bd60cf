"""`beholder replicate`: every printed number of the studies beside ours."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import typer

from beholder.cli.console import err, out, say_json
from beholder.core.errors import UsageError


def replicate_command(
    run: Path = typer.Argument(
        None, help="A run folder. None: what follows from the printed tables alone, and whether they agree."
    ),
    output: Path = typer.Option(
        None, "--out", "-o", help="Folder for the ledger and its page. Default: RUN, or beholder-replication."
    ),
    printed_as: str = typer.Option(
        None, "--as", help="The printed name under which the run's one model stands in the studies (ViT-B/32 …)."
    ),
    data: Path = typer.Option(
        None,
        "--data",
        envvar="BEHOLDER_DATA",
        help="Folder of the data sets, to count again the sizes that the papers print of theirs.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the ledger and the checks as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No summary."),
) -> None:
    """Set every published number beside ours, with difference, interval and verdict, and check the printed tables."""
    # Imported here so that other commands start without it.
    from beholder.cli.listing import show
    from beholder.published.consistency import consistency
    from beholder.published.ledger import counts, ledger, printed_name
    from beholder.report.replication import write_replication
    from beholder.run import load_run

    if printed_as and not run:
        raise UsageError("--as names the model of a run: beholder replicate RUN --as NAME.")
    results = _renamed(load_run(run).results, printed_as) if run else None
    known = {name: printed_name(name) for name in (results["model"].unique() if results is not None else [])}
    cells = ledger(results, data)
    models = sorted(name for name in known.values() if name)
    page = write_replication(cells, output or run or Path("beholder-replication"), models=models)
    if as_json:
        checks = [{**check._asdict(), "holds": check.holds} for check in consistency()]
        say_json({"verdicts": counts(cells), "cells": cells.to_dicts(), "consistency": checks})
        return
    if not quiet:
        show([{"verdict": verdict, "cells": number} for verdict, number in counts(cells).items()], as_json=False)
        for check in consistency():
            if not check.holds:
                out.print(f"{check.study}, {check.table}: {check.finding}", markup=False)
    for name in (name for name, found in known.items() if not found):
        err.print(f"{name} is in none of the studies' tables; --as NAME says which of them it is.", markup=False)
    if not quiet:
        err.print(f"Page: {page.resolve()}", markup=False, soft_wrap=True)


def _renamed(results: pl.DataFrame, name: str | None) -> pl.DataFrame:
    """The run's rows under a printed name."""
    # Imported here so that other commands start without it.
    from beholder.models.catalog import find_model

    if name is None:
        return results
    if results["model"].n_unique() != 1:
        listed = ", ".join(results["model"].unique().sort())
        raise UsageError(f"--as names one model, and this run has {results['model'].n_unique()}: {listed}.")
    return results.with_columns(model=pl.lit(find_model(name).name))
