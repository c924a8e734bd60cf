"""`beholder plan`: what a data set can show, and what an audit costs, before anything is scored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import typer

from beholder._plan import plan
from beholder._run import load_run
from beholder.chapter.numbers import Result
from beholder.cli.console import duration, out, say_json, show, size
from beholder.cli.options import takes
from beholder.core.errors import UsageError
from beholder.core.options import COST, EFFECT, declared_options
from beholder.core.types import Fields
from beholder.cost.estimate import Cost, CostOptions, costs
from beholder.models.catalog import short
from beholder.studies.inquiry import chosen_studies
from beholder.studies.rows import PlanOptions

UNKNOWN = "unknown"
TREE = ("trunk", "branches", "leaves")
TIME = (
    "Time is that of scoring everything with an empty store. Loading the model, measuring and drawing the page come on "
    "top."
)
OF_COST = "model device precision processor_seconds stages rehearsed requests tokens_in tokens_out money".split()
OF_WORK = (
    "study dataset prompts picture_tokens text_tokens text_tokens_one_by_one tokens_estimated flop vision_flop "
    "text_flop bytes_read bytes_written"
).split()


def show_costs(costs: Sequence[Cost]) -> None:
    """A table for each study and data set, with a column for each model; then what must be known about it."""
    for place in dict.fromkeys((cost.work.study, cost.work.dataset) for cost in costs):
        of_study = [cost for cost in costs if (cost.work.study, cost.work.dataset) == place]
        columns = {cost.model: readable(cost) for cost in of_study}
        lines = dict.fromkeys(line for column in columns.values() for line in column)
        cells = {line: {model: column.get(line, "") for model, column in columns.items()} for line in lines}
        show([{" · ".join(place): line, **row} for line, row in cells.items()], as_json=False)
    notes = [f"{cost.model}: {note}" for cost in costs for note in cost.notes]
    if any(cost.seconds and not cost.requests for cost in costs):
        notes.append(TIME)
    for note in dict.fromkeys(notes):
        out.print(f"- {note}", markup=False)


def readable(cost: Cost) -> dict[str, str]:
    """The lines of one model's column."""
    work = cost.work
    lines = {
        "images": f"{work.pictures.count:,}",
        **({"looked at": f"{work.images:,.0f} times"} if round(work.images) != work.pictures.count else {}),
        "prompts": f"{work.prompts:,}",
        "scores": f"{work.cells:,.0f}",
        "picture tokens": _count(work.picture_tokens),
        "text tokens": _count(work.text_tokens, about=work.tokens_estimated),
    }
    if work.text_tokens_one_by_one is not None and cost.requests is None:
        if all(
            task.reading and task.reading.shared for task in work.tasks
        ):  # where they stand in the trees of questions
            parts = [sum(task.images * getattr(task.reading, name) for task in work.tasks) for name in TREE]
            lines[" / ".join(TREE)] = " / ".join(map(short, parts))
        lines["text tokens one by one"] = _count(work.text_tokens_one_by_one, about=work.tokens_estimated)
    if cost.requests is None:
        lines |= {
            "FLOP": _count(work.flop),
            "of it, image tower": _count(work.vision_flop),
            "weights": _size(cost.weights) + f" ({cost.precision})",
        }
    lines |= {"images read": _size(work.bytes_read), "written to the store": _size(work.bytes_written)}
    if cost.requests is not None:
        lines |= {
            "requests": f"{cost.requests:,.0f}",
            "uploaded": _size(work.bytes_sent),
            "tokens in": _count(cost.tokens_in),
            "tokens out": _count(cost.tokens_out),
            "money": UNKNOWN if cost.money is None else f"{cost.money:,.2f}",
        }
    time = "{1} ({0} – {2})".format(*map(duration, cost.seconds)) if cost.seconds else UNKNOWN
    lines[f"time, {cost.device}" if cost.requests is None else "time"] = time
    lines["slowest stage"] = cost.bottleneck or UNKNOWN
    return lines


def as_record(cost: Cost) -> dict[str, object]:
    """For JSON; what is not known is null."""
    work, seconds = cost.work, cost.seconds
    return {
        **{name: getattr(cost, name) for name in OF_COST},
        **{name: getattr(work, name) for name in OF_WORK},
        "images": work.pictures.count,
        "images_looked_at": round(work.images),
        "scores": round(work.cells),
        "weight_bytes": cost.weights,
        "bytes_uploaded": work.bytes_sent,
        "seconds": seconds and seconds.expected,
        "seconds_low": seconds and seconds.low,
        "seconds_high": seconds and seconds.high,
        "slowest_stage": cost.bottleneck,
        "notes": list(cost.notes),
    }


def _count(value: float | None, *, about: bool = False) -> str:
    """A count; large ones with two digits and a power of ten."""
    if value is None:
        return UNKNOWN
    text = f"{value:,.0f}" if value < 1e12 else f"{value:.2e}".replace("e+", "e")
    return f"about {text}" if about else text


def _size(value: float | None) -> str:
    return UNKNOWN if value is None else size(value)


# `beholder plan`


@takes("data", "dataset", "person", own=False, others=declared_options(PlanOptions) | declared_options(CostOptions))
def plan_command(
    studies: list[str] = typer.Argument(
        None, help="Studies; `beholder list studies` names them. With --cost, those that an audit would ask."
    ),
    as_json: bool = False,
    run: Path = typer.Option(
        None, "--run", help="Use the spreads of an earlier run instead of assumed ones.", rich_help_panel=EFFECT
    ),
    cost: list[str] = typer.Option(
        None,
        help="Show what this model costs instead: tokens, FLOP, bytes, time, money. A name as in `beholder audit`, "
        "or a folder with a config.json and no weights. May be given several times.",
        rich_help_panel=COST,
    ),
    *,
    options: Fields,
) -> None:
    """The cost is counted from the model's shapes, for which its weights are not needed. Time is that of a rehearsal on
    this machine, or with --on that of a GPU which is not here.
    """
    if not cost:
        if not studies:
            raise UsageError("Name a study (`beholder list studies`), or a model with --cost.")
        named = {name: options[name] for name in ("data", "dataset", "power", "effect", "person")}
        asked = PlanOptions(**named, results=load_run(run).results if run else None)
        rows = pl.concat([plan(study, asked) for study in studies])
        show(rows.to_dicts() if as_json else [_readable(row) for row in rows.to_dicts()], as_json)
        notes = rows.filter(pl.col("metric") != "plan.images_needed").iter_rows(named=True) if not as_json else ()
        for row in notes:
            out.print(f"- {row['concept']}: {row['note']}", markup=False)
        return
    data, dataset = options["data"], options["dataset"]
    counted = CostOptions(data, dataset, **{name: options[name] for name in declared_options(CostOptions)})
    found = costs(cost, chosen_studies(studies or [], {}, data=data, dataset=dataset, models=cost), counted)
    if as_json:
        say_json([as_record(each) for each in found])
    else:
        show_costs(found)


def _readable(row: Result) -> dict[str, object]:
    value, detectable = row["value"], row["metric"] == "plan.detectable"
    none = row.get("verdict") or "no number is enough"
    return {
        "metric": row["subset"],
        "comparison": row["concept"],
        "images": row["n"],
        "what": "detectable" if detectable else "images needed",
        "value": none if value is None else f"{value:.3f}" if detectable else f"{value:,.0f}",
        "unit": row["unit"],
    }
