"""`beholder plan`: what a data set can show, and what an audit costs, before anything is scored."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl
import typer

from beholder._options import AuditOptions
from beholder._run import load_run
from beholder.chapter.numbers import Result
from beholder.cli.console import duration, note, out, say_json, show, size
from beholder.cli.options import takes
from beholder.core.errors import BeholderError, UnknownName, UsageError
from beholder.core.options import COST, EFFECT, declared_options
from beholder.core.read import column_in
from beholder.core.results import results_table
from beholder.core.types import Fields
from beholder.cost.estimate import Cost, CostOptions, costs
from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset, with_bins
from beholder.datasets.labels import unclear_labels, without_labels
from beholder.datasets.survey import columns_of
from beholder.models.catalog import short
from beholder.studies import STUDIES
from beholder.studies.inquiry import DataChoice, chosen_studies, default_dataset, opened
from beholder.studies.rows import PlanOptions
from beholder.studies.study import Study

UNKNOWN = "unknown"
TREE = ("trunk", "branches", "leaves")
TIME = (
    "Time is that of scoring everything with an empty store. Loading the model, measuring and drawing the page come on "
    "top."
)
OWN_OPTIONS = declared_options(PlanOptions) | declared_options(CostOptions)
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
    notes = [f"{cost.model}: {text}" for cost in costs for text in cost.notes]
    local = any(cost.seconds and not cost.requests for cost in costs)
    for text in dict.fromkeys([*notes, TIME] if local else notes):
        out.print(f"- {text}", markup=False)


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
        if all(task.reading and task.reading.shared for task in work.tasks):  # then questions stand in trees
            parts = [sum(task.images * getattr(task.reading, name) for task in work.tasks) for name in TREE]
            lines[" / ".join(TREE)] = " / ".join(map(short, parts))
        lines["text tokens one by one"] = _count(work.text_tokens_one_by_one, about=work.tokens_estimated)
    if cost.requests is None:
        lines |= {"FLOP": _count(work.flop), "of it, image tower": _count(work.vision_flop)}
        lines["weights"] = f"{as_size(cost.weights)} ({cost.precision})"
    lines |= {"images read": as_size(work.bytes_read), "written to the store": as_size(work.bytes_written)}
    if cost.requests is not None:
        lines |= {"requests": f"{cost.requests:,.0f}", "uploaded": as_size(work.bytes_sent)}
        lines |= {"tokens in": _count(cost.tokens_in), "tokens out": _count(cost.tokens_out)}
        lines["money"] = UNKNOWN if cost.money is None else f"{cost.money:,.2f}"
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


def as_size(value: float | None) -> str:
    """A number of bytes, if it is known."""
    return UNKNOWN if value is None else size(value)


@takes(*("data", "dataset", "settings", "image_column", "map", "keep_codes", "bins", "person"), others=OWN_OPTIONS)
def plan_command(
    studies: list[str] | None = None,
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
    if not (cost or studies or options["prompts"]):
        raise UsageError("Name a study (`beholder list studies`), own prompts with --prompts, or a model with --cost.")
    choice = AuditOptions.of(**{name: value for name, value in options.items() if name not in OWN_OPTIONS})
    given, data, dataset = choice.study_options, choice.data, choice.dataset
    asked_for = chosen_studies(studies or [], given, data=data, dataset=dataset, models=cost or ())
    if not cost:
        named = {name: options[name] for name in ("power", "effect")}
        asked = PlanOptions(**named, person=choice.person, results=load_run(run).results if run else None)
        rows = pl.concat([plan(study, asked, choice) for study in asked_for]).to_dicts()
        show(rows if as_json else [_readable(row) for row in rows], as_json)
        for row in rows if not as_json else ():
            if row["metric"] != "plan.images_needed":
                out.print(f"- {row['concept']}: {row['note']}", markup=False)
        return
    counted = {name: options[name] for name in declared_options(CostOptions)}
    found = costs(cost, asked_for, CostOptions(data, dataset, dict(choice.settings), **counted))
    if as_json:
        say_json([as_record(each) for each in found])
    else:
        show_costs(found)


def _readable(row: Result) -> dict[str, object]:
    value, detectable = row["value"], row["metric"] == "plan.detectable"
    none = row.get("verdict") or "no number is enough"
    shown = none if value is None else f"{value:.3f}" if detectable else f"{value:,.0f}"
    about = {"metric": row["subset"], "comparison": row["concept"], "images": row["n"]}
    return {**about, "what": "detectable" if detectable else "images needed", "value": shown, "unit": row["unit"]}


# Which studies fit a data set, and how large an effect each can show with it


def plan(asked: str | Study, options: PlanOptions, choice: DataChoice | None = None) -> pl.DataFrame:
    """Smallest effects of all comparisons, and images needed for a named effect; of images that are here, if any."""
    study = STUDIES[asked] if isinstance(asked, str) else asked
    if not study.plans.plan:
        raise UnknownName("study to plan", study.name, [each for each in STUDIES if STUDIES[each].plans.plan])
    choice = choice or DataChoice(data=options.data, dataset=options.dataset)
    dataset = with_bins(opened(choice.dataset or default_dataset(study, choice.data), choice), choice.bins)
    unclear = unclear_labels(dataset, study.measures.compares or dataset.attributes)
    for label, found in unclear.items():
        note(f"{study.name}: {label} is not compared: {found}")
    dataset = without_labels(dataset, unclear)
    here = replace(dataset, partial=True).present()
    planned = _planned(study, here if len(here) else dataset, options)
    if planned.is_empty():
        raise UsageError(f"{study.name} cannot be planned on {dataset.name}: {_nothing_to_compare(study, dataset)}.")
    counted = pl.format("{}; none of these images is there: counted in the table", "note")
    return planned if len(here) else planned.with_columns(note=counted)


def _planned(study: Study, dataset: Dataset, options: PlanOptions) -> pl.DataFrame:
    rows = list(study.part("plan")(dataset, options))
    return results_table(rows, study=study.name, model="plan", dataset=dataset.name)


class Fit(NamedTuple):
    """Whether a study can be asked on a data set."""

    study: str
    fits: bool
    why: str  # what it compares there, or what is missing
    detectable: pl.DataFrame | None = None  # the plan, if it fits


def fitting_studies(dataset: Dataset) -> list[Fit]:
    """Every study that a model is audited with."""
    return [fit(study, dataset) for study in STUDIES.values() if study.measures.functions]


def fit(study: Study, dataset: Dataset) -> Fit:
    """Whether the study has something to compare here."""
    try:
        study.asks.tasks(dataset)
        planned = _planned(study, dataset, PlanOptions()) if study.plans.plan else None
    except BeholderError as error:
        return Fit(study.name, False, str(error).partition("\n")[0])
    if planned is None:
        return Fit(study.name, True, "its tasks can be scored; it has no plan")
    wanted = [column_in(dataset.table, name) for name in study.measures.compares]
    if wanted:
        every = planned.height
        planned = planned.filter(pl.col("concept").str.split(" × ").list.eval(pl.element().is_in(wanted)).list.all())
        if every and not planned.height:  # such as people with names and no occupations
            has = ", ".join(dataset.attributes)
            return Fit(study.name, False, f"to compare people it needs other columns than these: {has}")
    planned = planned.filter(pl.col("verdict").is_null())
    compared = planned["concept"].unique(maintain_order=True).to_list()
    if compared:
        return Fit(study.name, True, f"compares by {', '.join(compared)}", planned)
    return Fit(study.name, False, _nothing_to_compare(study, dataset))


def _nothing_to_compare(study: Study, dataset: Dataset) -> str:
    """Why there are no two groups."""
    wanted = [column_in(dataset.table, name) for name in study.measures.compares or dataset.attributes]
    columns = [each for each in columns_of(dataset) if each.name in wanted]
    if not columns:
        by, has = " or ".join(study.measures.compares) or "an attribute", ", ".join(dataset.attributes) or "none"
        return f"it compares people by {by}, and the columns are: {has}"
    return f"it takes two groups of at least five people ({'; '.join(f'{each.name}: {each.how}' for each in columns)})"


def uncompared(results: pl.DataFrame, studies: Iterable[Study], choice: DataChoice) -> Iterator[str]:
    """For each study that compared no two groups: why. A first look at a few images (`limit`) may be like that."""
    for study in studies:
        paired = [metric.name for metric in study.measures.metrics if metric.paired]
        rows = results.filter(pl.col("study") == study.name)
        if not paired or rows.filter(pl.col("metric").is_in(paired), pl.col("value").is_not_null()).height:
            continue
        dataset = load_dataset(choice.dataset or default_dataset(study, choice.data), choice.data, choice.settings)
        own = fit(study, dataset)
        if (study.measures.compares and choice.limit is None) or not own.fits:
            why = "too few of its images have a score" if own.fits else own.why
            yield f"{study.name}: no two groups of {dataset.name} were compared: {why}."
