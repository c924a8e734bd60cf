"""From caption files to results: APA's Section 4 on any captions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from beholder.core.digests import digest
from beholder.core.errors import MissingData, UsageError
from beholder.core.files import Place
from beholder.core.record import Record, read_record
from beholder.core.results import results_table
from beholder.core.tables import as_csv
from beholder.datasets import DATASETS, load_dataset
from beholder.datasets.dataset import Dataset
from beholder.models.spec import ModelSpec
from beholder.scores.imported import import_scores
from beholder.scores.ray_pool import ray_options
from beholder.scores.recorded import stored_scores
from beholder.scores.store import Store
from beholder.studies.apa.study import APA
from beholder.studies.exposure.captions import caption_files
from beholder.studies.exposure.counting import Counts, count_captions
from beholder.studies.exposure.measures import count_rows, identity_rows, word_rows
from beholder.studies.exposure.mentions import NAME, WORD_TERMS, Mentions, Term, people_table
from beholder.studies.exposure.study import EXPOSURE
from beholder.studies.public_figures.identity import IDENTITY, known_by_name
from beholder.studies.study import CommandOptions, Measured, MeasureOptions


def identity_scores(folder: Path, dataset: Dataset, store: Place) -> dict[str, pl.DataFrame]:
    """For every model of an APA audit: `name, gain, known, branch`, by person.

    Read from the store, or again from the files of imported scores; the model itself is not needed.
    """
    record = read_record(folder)
    if APA.name not in record.studies or dataset.name not in [entry["name"] for entry in record.datasets]:
        raise UsageError(
            f"{folder} is no audit of APA's photographs: it holds {', '.join(record.studies) or 'nothing'} on "
            f"{', '.join(entry['name'] for entry in record.datasets) or 'nothing'}.\n"
            "Make one with: beholder audit MODEL --study apa --data DIR"
        )
    limit = record.settings.get("limit")
    limited = dataset if limit is None else dataset.selected(APA.select(dataset, limit, record.settings.get("person")))
    tasks = [task for task in APA.asks.tasks(limited) if task.kind == IDENTITY]
    scores: dict[str, pl.DataFrame] = {}
    for entry in record.models:
        if "digest" in entry:
            spec = ModelSpec(**{key: value for key, value in entry.items() if key not in ("digest", "notes")})
            matrices = stored_scores(tasks, spec, Store(store))
        else:
            matrices = import_scores([Path(file) for file in entry["files"]], tasks).matrices
        people = [known_by_name(each).with_columns(branch=pl.lit(each.part)) for each in matrices]
        if people := [table for table in people if table.height > 1]:
            scores[str(entry["name"])] = pl.concat(people)
    if not scores:
        raise MissingData(
            f"The store at {store} has no identity scores of {folder}.\n"
            "Name the store of that audit with --store, or run the audit again."
        )
    return scores


def expose(captions: Sequence[str], options: CommandOptions) -> Measured:
    """Count and measure; every input is checked before anything is counted."""
    audit = options.own.get("run")
    dataset = load_dataset("apa", options.data)
    files = caption_files(captions, options.own.get("column"))
    people = people_table(dataset)
    scores = identity_scores(audit, dataset, options.store) if audit else {}
    mentions = Mentions([*(Term(NAME, name) for name in people[NAME]), *WORD_TERMS])
    ray = ray_options(options.own.get("engine", "local"), options.own.get("workers"))
    counts = count_captions(files, mentions, options.progress, store=options.store, ray=ray)
    people = people.with_columns(
        captions=pl.Series(counts.apart[: people.height]), inside=pl.Series(counts.inside[: people.height])
    )
    more = f" and {len(captions) - 1} more" if len(captions) > 1 else ""
    name = options.own.get("name") or f"{Path(captions[0]).name}{more}"
    results = _measured(people, counts, scores, name, options.measure)
    record = _record(results, counts, options)
    record.add_dataset(
        {
            "name": dataset.name,
            "revision": dataset.revision,
            "licence": dataset.licence,
            "origin": DATASETS["apa"].origin,
            "people": people.height,
            "notes": list(dataset.notes),
        }
    )
    more_files = {"people.csv": as_csv(people)} if options.own.get("people") else {}
    return Measured(results, record, more_files)


def _measured(
    people: pl.DataFrame, counts: Counts, scores: dict[str, pl.DataFrame], name: str, options: MeasureOptions
) -> pl.DataFrame:
    """In rows about captions alone the column `model` names the captions."""
    rows = [*count_rows(people, options), *word_rows(counts, people.height)]
    tables = [results_table(rows, study=EXPOSURE.name, model=name, dataset="apa")]
    for model, identity in scores.items():
        known = people.join(identity, on=["branch", "name"], how="inner", maintain_order="left")
        rows = list(identity_rows(known, options))
        tables.append(results_table(rows, study=EXPOSURE.name, model=model, dataset="apa"))
    return pl.concat(tables)


def _record(results: pl.DataFrame, counts: Counts, options: CommandOptions) -> Record:
    """How the numbers were made, and what could not be read."""
    record, audit = Record(studies=[EXPOSURE.name]), options.own.get("run")
    record.settings = {
        "column": options.own.get("column"),
        "draws": options.measure.draws,
        "seed": options.measure.seed,
        "identity scores of": str(audit) if audit else None,
    }
    record.models.append(
        {
            "name": results["model"][0],
            "adapter": "captions",
            "captions": counts.captions,
            "digest": digest([tally.digest for tally in counts.files]),
            "files": [tally.path for tally in counts.files],
        }
    )
    audited = read_record(audit).models if audit else []
    record.models += [entry for entry in audited if entry["name"] in set(results["model"])]
    record.left_out += [line for tally in counts.files for line in tally.remarks]
    return record
