"""`beholder plan --cost`: the table and the JSON of an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from beholder.cli.console import out
from beholder.cli.listing import show
from beholder.models.catalog import short

if TYPE_CHECKING:
    from beholder.cost.estimate import Cost

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
