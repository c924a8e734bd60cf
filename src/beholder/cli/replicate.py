"""`beholder replicate --run`: fetch what printed models need, run what is missing, for the ledger to compare."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from beholder._audit import audit_models
from beholder._options import AuditOptions
from beholder.chapter.numbers import listed
from beholder.cli.console import duration, note, size
from beholder.core.errors import BeholderError, MissingData, UsageError, first_line
from beholder.core.record import Record
from beholder.core.results import SCHEMA
from beholder.core.types import Entry
from beholder.cost.estimate import CostOptions, costs
from beholder.datasets import DATASETS
from beholder.models.catalog import ModelEntry, catalog, find_model
from beholder.report.replication import printed_studies
from beholder.studies import STUDIES
from beholder.studies.inquiry import default_dataset
from beholder.studies.study import Study

PRECISION = 4  # bytes of a weight as most are stored
UNKNOWN = "unknown"
SIZES = {"of weights": "weight_bytes", "of images": "image_bytes"}


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
    for row in (
        *rows,
        {**dict.fromkeys(("study", "dataset", "data", "weights"), ""), "model": "known in all", **total},
    ):
        sizes = {name: UNKNOWN if row[key] is None else size(row[key]) for name, key in SIZES.items()}
        time = UNKNOWN if row["seconds"] is None else duration(row["seconds"])
        what = {name: row[name] for name in ("model", "study", "dataset", "data")}
        yield {**what, **sizes, f"time, {on}": time, "from": row.get("why") or row["weights"]}


def run_models(
    entries: Sequence[ModelEntry], options: AuditOptions, out: Path
) -> tuple[pl.DataFrame, list[Record], dict[str, str]]:
    """Every model with the studies that print it, as printed: results, records, and what was left out and why."""
    tables, records, left_out = [pl.DataFrame(schema=SCHEMA)], list[Record](), dict[str, str]()
    for entry in entries:
        for study in printing(entry):
            what = f"{entry.name}, {study.name}"
            folder = out / "runs" / f"{entry.name}-{study.name}".replace("/", "-").replace(" ", "-")
            try:
                _fetch_data(study, options.data)
                if not entry.load:
                    raise MissingData(f"Its weights have to be brought: {entry.note or entry.source}")
                run = audit_models([entry.name], [study], replace(options, compat=True, out=folder))
            except BeholderError as error:
                left_out[what] = first_line(error)
                note(f"{what}: left out. {left_out[what]}")
                continue
            tables.append(run.results.select(list(SCHEMA)))
            records.append(run.record)
    return pl.concat(tables), records, left_out


def _fetch_data(study: Study, data: Path | None) -> None:
    """Download the study's data, if it is not there and may be."""
    if data is None:
        raise UsageError("Name a folder for the data with --data DIR (or set BEHOLDER_DATA).")
    source = DATASETS[default_dataset(study, data)]
    if not source.folder(data).is_dir() and source.fetch:
        note(f"fetching {source.name} …")
        source.fetch(source.folder(data))
