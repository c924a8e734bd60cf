"""`beholder plan`: what a data set can show, and what an audit costs, before anything is scored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import typer

from beholder.cli.console import out, say_json
from beholder.core.errors import UsageError

if TYPE_CHECKING:
    from beholder.studies.planning import PlanOptions


EFFECT, COST = "What the data can show", "What it costs (with --cost)"


def plan_command(
    benchmarks: list[str] = typer.Argument(
        None, help="Studies; `beholder list benchmarks` names them. With --cost, those that an audit would ask."
    ),
    data: Path = typer.Option(
        None, "--data", envvar="BEHOLDER_DATA", help="Folder of the data sets. Default: the embedded world."
    ),
    dataset: str = typer.Option(None, help="Another data set for the benchmark, by name."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    run: Path = typer.Option(
        None, "--run", help="Use the spreads of an earlier run instead of assumed ones.", rich_help_panel=EFFECT
    ),
    power: float = typer.Option(
        0.8, min=0.05, max=0.999, help="Probability of finding the effect.", rich_help_panel=EFFECT
    ),
    effect: float = typer.Option(
        None,
        min=1e-6,
        help="Show how many images this effect needs (a gap in probability; 1 − b for a ratio).",
        rich_help_panel=EFFECT,
    ),
    person: str = typer.Option(
        None, help="The column that says who is shown, as in `beholder audit`.", rich_help_panel=EFFECT
    ),
    cost: list[str] = typer.Option(
        None,
        help="Show what this model costs instead: tokens, FLOP, bytes, time, money. A name as in `beholder audit`, "
        "or a folder with a config.json and no weights. May be given several times.",
        rich_help_panel=COST,
    ),
    images: int = typer.Option(None, min=1, help="As if the data set had so many images.", rich_help_panel=COST),
    on: str = typer.Option(
        None, help="Plan for a card by its data sheet: b200, h200, h100, a100, l40s, l4, a10.", rich_help_panel=COST
    ),
    cards: int = typer.Option(1, min=1, help="How many of these cards.", rich_help_panel=COST),
    cores: int = typer.Option(
        None, min=1, help="Cores that open images, beside each card. Default: 16; here: all.", rich_help_panel=COST
    ),
    decode: str = typer.Option("exact", help="exact or gpu, as in `beholder audit`.", rich_help_panel=COST),
    device: str = typer.Option("auto", help="auto, cpu, cuda, as in `beholder audit`.", rich_help_panel=COST),
    precision: str = typer.Option("auto", help="float32, bfloat16 …, as in `beholder audit`.", rich_help_panel=COST),
    rehearse: float = typer.Option(
        10.0,
        min=0,
        help="Seconds of rehearsal on this machine, after loading the model; 0: none.",
        rich_help_panel=COST,
    ),
    picture_tokens: int = typer.Option(
        None, min=1, help="Tokens of one image, where they are unknown (served models).", rich_help_panel=COST
    ),
    price_in: float = typer.Option(
        None, min=0, help="Price of a million tokens sent to a served model.", rich_help_panel=COST
    ),
    price_out: float = typer.Option(
        None, min=0, help="Price of a million tokens that it answers.", rich_help_panel=COST
    ),
) -> None:
    """Before a run: show the smallest effect that this data set can show, at 5 % after correction; or, with --cost,
    what the run costs.

    The cost is counted from the model's shapes, for which its weights are not needed. Time is that of a rehearsal on
    this machine, or with --on that of a card which is not here.
    """
    # Imported here so that other commands start without it.
    from beholder.cli.cost import as_record, show_costs
    from beholder.cost.estimate import CostOptions, costs
    from beholder.run import load_run
    from beholder.studies.planning import PlanOptions
    from beholder.studies.sheets import chosen_studies

    if not cost:
        results = load_run(run).results if run else None
        _show_effects(benchmarks or [], PlanOptions(data, dataset, power, effect, results, person), as_json)
        return
    options = CostOptions(
        data=data,
        dataset=dataset,
        images=images,
        on=on,
        cards=cards,
        cores=cores,
        precision=precision,
        decode=decode,
        device=device,
        picture_tokens=picture_tokens,
        price_in=price_in,
        price_out=price_out,
        rehearse=rehearse,
    )
    studies = chosen_studies(benchmarks or [], {}, data=data, dataset=dataset, models=cost)
    found = costs(cost, studies, options)
    if as_json:
        say_json([as_record(each) for each in found])
    else:
        show_costs(found)


def _show_effects(benchmarks: list[str], options: PlanOptions, as_json: bool) -> None:
    """The smallest effect of every comparison."""
    # Imported here so that other commands start without it.
    from beholder.cli.listing import show
    from beholder.plan import plan

    if not benchmarks:
        raise UsageError("Name a study (`beholder list benchmarks`), or a model with --cost.")
    rows = pl.concat([plan(benchmark, options) for benchmark in benchmarks])
    if as_json:
        say_json(rows.to_dicts())
        return
    show([_readable(row) for row in rows.to_dicts()], as_json=False)
    for row in rows.filter(pl.col("metric") != "plan.images_needed").iter_rows(named=True):
        out.print(f"- {row['concept']}: {row['note']}", markup=False)


WHAT = {"plan.detectable": "detectable", "plan.images_needed": "images needed"}


def _readable(row: dict[str, object]) -> dict[str, object]:
    value = row["value"]
    shown = (
        (row.get("verdict") or "no number is enough")
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
