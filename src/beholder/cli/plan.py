"""`beholder plan`: what a data set can show, before anything is scored."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import typer

from beholder.cli.console import out, say_json


def plan_command(
    benchmark: str = typer.Argument(..., help="A study; `beholder list benchmarks` names them."),
    data: Path = typer.Option(
        None, "--data", envvar="BEHOLDER_DATA", help="Folder of the data sets. Default: the embedded world."
    ),
    dataset: str = typer.Option(None, help="Another data set for the benchmark, by name."),
    run: Path = typer.Option(None, "--run", help="Use the spreads of an earlier run instead of assumed ones."),
    power: float = typer.Option(0.8, min=0.05, max=0.999, help="Probability of finding the effect."),
    effect: float = typer.Option(
        None, min=1e-6, help="Show how many images this effect needs (a gap in probability; 1 − b for a ratio)."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show the smallest effect that this data set can show, at 5 % after correction."""
    # Imported here so that other commands start without it.
    from beholder.cli.listing import show
    from beholder.plan import plan
    from beholder.run import load_run
    from beholder.studies.planning import PlanOptions

    results = load_run(run).results if run else None
    rows = plan(benchmark, PlanOptions(data, dataset, power, effect, results))
    if as_json:
        say_json(rows.to_dicts())
        return
    show([_readable(row) for row in rows.to_dicts()], as_json=False)
    for row in rows.filter(pl.col("metric") != "plan.images_needed").iter_rows(named=True):
        out.print(f"- {row['concept']}: {row['note']}", markup=False)


WHAT = {
    "plan.detectable": "detectable",
    "plan.images_needed": "images needed",
    "plan.prompts_needed": "wordings needed",
}


def _readable(row: dict[str, object]) -> dict[str, object]:
    value = row["value"]
    shown = (
        "no number is enough"
        if value is None
        else f"{value:,.0f}"
        if row["metric"] != "plan.detectable"
        else f"{value:.3f}"
    )
    return {
        "metric": row["subset"],
        "comparison": row["concept"],
        "images": row["n"],
        "what": WHAT[str(row["metric"])],
        "value": shown,
        "unit": row["unit"],
    }
