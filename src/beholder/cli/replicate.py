"""`beholder replicate`: every printed number beside ours; with `--run`, what printed models need is fetched and run."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import typer

from beholder._audit import audit_models
from beholder._options import AuditOptions
from beholder._run import load_run
from beholder.chapter.numbers import listed
from beholder.cli.console import bar, duration, err, note, out, say_json, show
from beholder.cli.options import writable
from beholder.cli.plan import UNKNOWN, as_size
from beholder.core.errors import BeholderError, MissingData, UsageError, first_line
from beholder.core.progress import silent
from beholder.core.results import SCHEMA
from beholder.core.types import Entry
from beholder.cost.estimate import CostOptions, costs
from beholder.datasets import DATASETS, data_root
from beholder.models.catalog import ModelEntry, catalog, find_model
from beholder.report.facts import part_of
from beholder.report.replication import (
    RUN,
    as_records,
    consistency,
    counts,
    ledger,
    printed_name,
    printed_studies,
    write_replication,
)
from beholder.studies import STUDIES
from beholder.studies.inquiry import default_dataset
from beholder.studies.printed import Check
from beholder.studies.study import Study

PRECISION = 4  # bytes of a weight as most are stored
SIZES = {"of weights": "weight_bytes", "of images": "image_bytes"}
LEDGER, MOST = Path("beholder-replication"), 40  # the folder without a run, and the rows of it that are printed
COMPARED = "study model metric subset group concept printed value verdict".split()
ORIGINS = {RUN: "this run", "printed tables": "printed tables", "data": "data", "none": "no value of ours"}


def replicate_command(
    given: list[str] = typer.Argument(
        None,
        metavar="[RUN] or NAME…",
        help="A run folder; without it only the printed tables are checked: no model, no data. With --run, the printed "
        "names of models; without them all.",
    ),
    make: bool = typer.Option(
        False, "--run", help="Fetch data and weights of printed models, and run what is missing, as printed (--compat)."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="With --run: show what it would fetch, with bytes and time."),
    on: str = typer.Option("h200", help="With --dry-run: the GPU whose time is counted."),
    output: Path = typer.Option(
        None, "--out", "-o", help="Folder for the ledger and its page. Default: RUN, or beholder-replication."
    ),
    printed_as: str = typer.Option(
        None, "--as", help="The name that the studies print for the one model of the run (ViT-B/32 …)."
    ),
    data: Path | None = None,
    store: str | None = None,
    device: str = "auto",
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """In the folder of data, the sizes that the papers print are counted again."""
    if dry_run and not make:
        raise UsageError("--dry-run goes with --run.")
    if len(given or ()) > 1 and not make:
        raise UsageError("Name one run. Names of models go with --run.")
    run = Path(given[0]) if given and not make else None
    if printed_as and not (run or make):
        raise UsageError("--as needs a run: beholder replicate RUN --as NAME.")
    place, results, datasets = output or run or LEDGER, pl.DataFrame(schema=SCHEMA), list[Entry]()
    if make:
        chosen, progress = printed_models(given or []), silent if quiet or as_json else bar
        if dry_run:
            rows = list(planned(chosen, data_root(data), on))
            show(rows if as_json else list(readable(rows, on)), as_json)
            return
        options = AuditOptions.of(data=data, store=store, device=device, progress=progress)
        writable(place, "--out")
        results, datasets = run_models(chosen, options, place)
    elif run:
        loaded = load_run(run)
        results, datasets = loaded.results, loaded.record.datasets
        if printed_as:
            results = _as_printed_model(results, printed_as)
    printed = {model: printed_name(model) for model in results["model"].unique()}
    parts = {str(each["name"]): f"this run is over {part} images" for each in datasets if (part := part_of(each))}
    cells, checks = ledger(results, data_root(data), parts), consistency()
    page = write_replication(cells, checks, place, models=sorted({name for name in printed.values() if name}))
    if as_json:
        say_json({"verdicts": counts(cells), "cells": cells.to_dicts(), "consistency": as_records(checks)})
        return
    if not quiet:
        _print_ledger(cells, checks, ran=bool(run or make))
        note(f"Page: {page.resolve()}")
        if make:
            show(cells.filter(pl.col("origin") == RUN).select(*COMPARED).head(MOST).to_dicts(), as_json=False)
    for model in (model for model, name in printed.items() if not name):
        err.print(f"{model} is in none of the printed tables. If it is one of their models: --as NAME.", markup=False)


def _as_printed_model(results: pl.DataFrame, name: str) -> pl.DataFrame:
    """The results of a run's one model, under the name that the studies print."""
    names = results["model"].unique().sort()
    if len(names) != 1:
        raise UsageError(f"--as names one model, but this run has {len(names)}: {', '.join(names)}.")
    return results.with_columns(model=pl.lit(find_model(name).name))


def _print_ledger(cells: pl.DataFrame, checks: list[Check], *, ran: bool) -> None:
    """How many cells have which verdict: what the run measured, apart from what follows from tables and data."""
    verdicts = counts(cells)
    used = [each for each in ORIGINS if any(row[each] for row in verdicts.values()) or (each == RUN and ran)]
    rows = [{"verdict": name, **{ORIGINS[each]: row[each] for each in used}} for name, row in verdicts.items()]
    show(rows, as_json=False)
    for check in checks:
        if not check.holds:
            out.print(f"{check.study}, {check.table}: {check.finding}", markup=False)


def printed_models(names: Sequence[str]) -> list[ModelEntry]:
    """The named models, or all that a ledger has numbers of."""
    there = {model for _, printed in printed_studies() for model in printed.cells["model"].unique()}
    entries = [find_model(name) for name in names] or [entry for entry in catalog() if entry.name in there]
    if unprinted := [entry.name for entry in entries if entry.name not in there]:
        raise UsageError(
            f"No study prints numbers of {listed(unprinted)}. `beholder list models --study` shows who has."
        )
    return entries


def printing(entry: ModelEntry) -> list[Study]:
    """The studies that print numbers of a model."""
    return [STUDIES[name] for name, printed in printed_studies() if entry.name in printed.cells["model"]]


def planned(entries: Sequence[ModelEntry], data: Path | None, on: str) -> Iterator[Entry]:
    """What would be fetched and run: bytes, and seconds on a GPU by its data sheet; None where that is not known."""
    for entry in entries:
        for study in printing(entry):
            name = default_dataset(study, data or Path())
            source, here = DATASETS[name], data is not None and DATASETS[name].folder(data).is_dir()
            row: Entry = {"model": entry.name, "study": study.name, "dataset": name, "images": source.images}
            row |= {"data": "here" if here else "fetch" if source.fetch else f"bring it: {source.origin}"}
            row |= {"weights": entry.load or f"bring them: {entry.source}", "why": None}
            row |= {"weight_bytes": entry.parameters * PRECISION if entry.parameters else None}
            row |= {"image_bytes": None, "seconds": None}
            try:
                for cost in costs([entry.name], [study], CostOptions(data, on=on)) if here and entry.load else ():
                    seconds = cost.seconds.expected if cost.seconds else None
                    row |= {"image_bytes": cost.work.bytes_read, "seconds": seconds}
            except BeholderError as error:
                row["why"] = first_line(error)
            yield row


def readable(rows: Sequence[Entry], on: str) -> Iterator[dict[str, object]]:
    """The same for a person, with the sum of what is known: weights are fetched once for all studies."""
    weights = {row["model"]: row["weight_bytes"] or 0 for row in rows}
    total: Entry = {"weight_bytes": sum(weights.values()), "seconds": sum(row["seconds"] or 0 for row in rows)}
    total |= {"image_bytes": sum(row["image_bytes"] or 0 for row in rows)}
    total |= {"model": "known in all", **dict.fromkeys(("study", "dataset", "data", "weights"), "")}
    for row in (*rows, total):
        sizes = {name: as_size(row[key]) for name, key in SIZES.items()}
        time = UNKNOWN if row["seconds"] is None else duration(row["seconds"])
        what = {name: row[name] for name in ("model", "study", "dataset", "data")}
        yield {**what, **sizes, f"time, {on}": time, "from": row.get("why") or row["weights"]}


def run_models(entries: Sequence[ModelEntry], options: AuditOptions, out: Path) -> tuple[pl.DataFrame, list[Entry]]:
    """Every model with the studies that print it, as printed: the results, and what records say of the data sets."""
    tables, datasets, left_out = list[pl.DataFrame](), list[Entry](), list[str]()
    for entry in entries:
        for study in printing(entry):
            folder = out / "runs" / f"{entry.name}-{study.name}".replace("/", "-").replace(" ", "-")
            try:
                _fetch_data(study, options.data)
                if not entry.load:
                    raise MissingData(f"Its weights have to be brought: {entry.note or entry.source}")
                run = audit_models([entry.name], [study], replace(options, compat=True, out=folder))
            except BeholderError as error:
                left_out.append(f"{entry.name}, {study.name}: {first_line(error)}")
                note(f"{entry.name}, {study.name}: left out. {first_line(error)}")
                continue
            tables.append(run.results.select(list(SCHEMA)))
            datasets += run.record.datasets
    if not tables:
        raise UsageError("Nothing could be run:\n" + "\n".join(left_out))
    return pl.concat(tables), datasets


def _fetch_data(study: Study, data: Path | None) -> None:
    """Download the study's data, if it is not there and may be."""
    if data is None:
        raise UsageError("Name a folder for the data with --data DIR (or set BEHOLDER_DATA).")
    source = DATASETS[default_dataset(study, data)]
    if not source.folder(data).is_dir() and source.fetch:
        note(f"fetching {source.name} …")
        source.fetch(source.folder(data))
