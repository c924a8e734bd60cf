"""`beholder plan`: what a data set can show, and what an audit costs, before anything is scored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import typer

from beholder._plan import plan
from beholder._run import load_run
from beholder.cli.console import out, say_json, show
from beholder.core.errors import UsageError
from beholder.cost.estimate import Cost, CostOptions, costs
from beholder.models.catalog import short
from beholder.studies.inquiry import chosen_studies
from beholder.studies.rows import PlanOptions

UNKNOWN = "unknown"


def show_costs(costs: Sequence[Cost]) -> None:
    """A table for each study and data set, with a column for each model; then what must be known about it."""
    for place in dict.fromkeys((cost.work.study, cost.work.dataset) for cost in costs):
        of_study = [cost for cost in costs if (cost.work.study, cost.work.dataset) == place]
        columns = {cost.model: readable(cost) for cost in of_study}
        lines = list(dict.fromkeys(line for column in columns.values() for line in column))
        show(
            [
                {" · ".join(place): line, **{model: column.get(line, "") for model, column in columns.items()}}
                for line in lines
            ],
            as_json=False,
        )
    notes = {(cost.model, note): None for cost in costs for note in cost.notes}
    for model, note in notes:
        out.print(f"- {model}: {note}", markup=False)
    if any(cost.seconds and not cost.requests for cost in costs):
        out.print(
            "- Time is that of scoring everything with an empty store. Loading the model, measuring and drawing the "
            "page come on top.",
            markup=False,
        )


def readable(cost: Cost) -> dict[str, str]:
    """The lines of one model's column."""
    work, task_tokens = cost.work, _split(cost)
    lines = {
        "images": f"{work.pictures.count:,}",
        **({"looked at": f"{work.images:,.0f} times"} if round(work.images) != work.pictures.count else {}),
        "prompts": f"{work.prompts:,}",
        "scores": f"{work.cells:,.0f}",
        "picture tokens": _count(work.picture_tokens),
        "text tokens": _count(work.text_tokens, about=work.tokens_estimated),
    }
    if work.text_tokens_one_by_one is not None and cost.requests is None:
        lines |= task_tokens
        lines["text tokens one by one"] = _count(work.text_tokens_one_by_one, about=work.tokens_estimated)
    if cost.requests is None:
        lines |= {
            "FLOP": _count(work.flop),
            "of it, image tower": _count(work.vision_flop),
            "weights": _bytes(cost.weights) + f" ({cost.precision})",
        }
    lines |= {"images read": _bytes(work.bytes_read), "written to the store": _bytes(work.bytes_written)}
    if cost.requests is not None:
        lines |= {
            "requests": f"{cost.requests:,.0f}",
            "uploaded": _bytes(work.bytes_sent),
            "tokens in": _count(cost.tokens_in),
            "tokens out": _count(cost.tokens_out),
            "money": UNKNOWN if cost.money is None else f"{cost.money:,.2f}",
        }
    lines[f"time, {cost.device}" if cost.requests is None else "time"] = _time(cost)
    lines["slowest stage"] = cost.bottleneck or UNKNOWN
    return lines


def as_record(cost: Cost) -> dict[str, object]:
    """For JSON; what is not known is null."""
    work, seconds = cost.work, cost.seconds
    return {
        "model": cost.model,
        "study": work.study,
        "dataset": work.dataset,
        "device": cost.device,
        "precision": cost.precision,
        "images": work.pictures.count,
        "images_looked_at": round(work.images),
        "prompts": work.prompts,
        "scores": round(work.cells),
        "picture_tokens": work.picture_tokens,
        "text_tokens": work.text_tokens,
        "text_tokens_one_by_one": work.text_tokens_one_by_one,
        "tokens_estimated": work.tokens_estimated,
        "flop": work.flop,
        "vision_flop": work.vision_flop,
        "text_flop": work.text_flop,
        "weight_bytes": cost.weights,
        "bytes_read": work.bytes_read,
        "bytes_written": work.bytes_written,
        "bytes_uploaded": work.bytes_sent,
        "seconds": seconds and seconds.expected,
        "seconds_low": seconds and seconds.low,
        "seconds_high": seconds and seconds.high,
        "processor_seconds": cost.processor_seconds,
        "stages": cost.stages,
        "slowest_stage": cost.bottleneck,
        "rehearsed": cost.rehearsed,
        "requests": cost.requests,
        "tokens_in": cost.tokens_in,
        "tokens_out": cost.tokens_out,
        "money": cost.money,
        "notes": list(cost.notes),
    }


def _split(cost: Cost) -> dict[str, str]:
    """Where the text tokens stand in the trees of questions, all pictures together."""
    if not all(task.reading and task.reading.shared for task in cost.work.tasks):
        return {}
    parts = {"trunk": 0.0, "branches": 0.0, "leaves": 0.0}
    for task in cost.work.tasks:
        for name in parts:
            parts[name] += task.images * getattr(task.reading, name)
    return {"trunk / branches / leaves": " / ".join(short(value) for value in parts.values())}


def _count(value: float | None, *, about: bool = False) -> str:
    """A count; large ones with two digits and a power of ten."""
    if value is None:
        return UNKNOWN
    text = f"{value:,.0f}" if value < 1e12 else f"{value:.2e}".replace("e+", "e")
    return f"about {text}" if about else text


def _bytes(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    unit, name = next(((u, n) for u, n in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if value >= u), (1e3, "KB"))
    return f"{value / unit:,.1f} {name}"


def _time(cost: Cost) -> str:
    if cost.seconds is None:
        return UNKNOWN
    low, expected, high = cost.seconds
    return f"{duration(expected)} ({duration(low)} – {duration(high)})"


def duration(seconds: float) -> str:
    """As people say it.

    >>> duration(95), duration(7300)
    ('1.6 min', '2 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.2g} min"
    return f"{seconds / 3600:.2g} h" if seconds < 100 * 3600 else f"{seconds / 3600:,.0f} h"


# `beholder plan`

EFFECT, COST = "What the data can show", "What it costs (with --cost)"


def plan_command(
    studies: list[str] = typer.Argument(
        None, help="Studies; `beholder list studies` names them. With --cost, those that an audit would ask."
    ),
    data: Path = typer.Option(
        None, "--data", envvar="BEHOLDER_DATA", help="Folder of the data sets. Default: the embedded world."
    ),
    dataset: str = typer.Option(None, help="Another data set for the study, by name."),
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
    """The cost is counted from the model's shapes, for which its weights are not needed. Time is that of a rehearsal on
    this machine, or with --on that of a card which is not here.
    """
    if not cost:
        results = load_run(run).results if run else None
        _show_effects(studies or [], PlanOptions(data, dataset, power, effect, results, person), as_json)
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
    chosen = chosen_studies(studies or [], {}, data=data, dataset=dataset, models=cost)
    found = costs(cost, chosen, options)
    if as_json:
        say_json([as_record(each) for each in found])
    else:
        show_costs(found)


def _show_effects(studies: list[str], options: PlanOptions, as_json: bool) -> None:
    """The smallest effect of every comparison."""
    if not studies:
        raise UsageError("Name a study (`beholder list studies`), or a model with --cost.")
    rows = pl.concat([plan(study, options) for study in studies])
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
