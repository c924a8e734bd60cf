"""Exposure: how often the captions from which models learn name the people of APA (its Section 4 on any captions)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from beholder.core.digests import digest
from beholder.core.errors import MissingData, UsageError
from beholder.core.files import Place
from beholder.core.read import as_csv
from beholder.core.record import Record, read_record
from beholder.core.results import results_table
from beholder.datasets import DATASETS, load_dataset
from beholder.datasets.dataset import Dataset
from beholder.models.spec import ModelSpec
from beholder.scores.imported import import_scores
from beholder.scores.ray_pool import ray_options
from beholder.scores.store import Store, stored_scores
from beholder.studies.apa.study import APA
from beholder.studies.exposure.captions import caption_files
from beholder.studies.exposure.counting import count_captions
from beholder.studies.exposure.measures import METRICS, count_rows, identity_rows, word_rows
from beholder.studies.exposure.mentions import NAME, WORD_TERMS, Mentions, Term, people_table
from beholder.studies.public_figures.identity import IDENTITY, known_by_name
from beholder.studies.study import Asks, Command, CommandOptions, Measured, Measures, Plans, Study, read_words

WORDS = read_words(__name__)
EXPOSURE = Study(
    **WORDS.about,
    asks=Asks(datasets=("apa",), tasks=APA.asks.tasks),
    measures=Measures(functions=(), metrics=METRICS, within=("branch",)),
    tells=replace(WORDS.tells, of_photographs=APA.tells.of_photographs),
    plans=Plans(trials="beholder.studies.exposure.measures:TRIALS"),
    command=Command(**WORDS.command, run=f"{__name__}:expose", options=WORDS.options),
)


def identity_scores(folder: Path, dataset: Dataset, store: Place) -> dict[str, pl.DataFrame]:
    """For every model of an APA audit: `name, gain, known, branch`, by person."""
    # Read from the store, or again from the files of imported scores; the model itself is not needed.
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
            spec = ModelSpec(**{key: entry[key] for key in ModelSpec.__dataclass_fields__})
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
    given, dataset = options.study_options, load_dataset("apa", options.data)
    files = caption_files(captions, given.get("column"))
    people = people_table(dataset)
    scores = identity_scores(given["run"], dataset, options.store) if given.get("run") else {}
    mentions = Mentions([*(Term(NAME, name) for name in people[NAME]), *WORD_TERMS])
    ray = ray_options(given.get("engine", "local"), given.get("workers"))
    counts = count_captions(files, mentions, options.progress, store=options.store, ray=ray)
    named = {"captions": counts.apart[: people.height], "inside": counts.inside[: people.height]}
    people = people.with_columns(**{column: pl.Series(numbers) for column, numbers in named.items()})
    more = f" and {len(captions) - 1} more" if len(captions) > 1 else ""
    name = given.get("name") or f"{Path(captions[0]).name}{more}"
    rows = {name: [*count_rows(people, options.measure), *word_rows(counts, people.height)]}
    for model, identity in scores.items():
        known = people.join(identity, on=["branch", "name"], how="inner", maintain_order="left")
        rows[model] = list(identity_rows(known, options.measure))
    # In rows about captions alone the column `model` names the captions.
    tables = [results_table(rows[model], study=EXPOSURE.name, model=model, dataset="apa") for model in rows]
    names, audit = list(rows), given.get("run")
    settings = {"column": given.get("column"), "draws": options.measure.draws, "seed": options.measure.seed}
    audited = [entry for entry in read_record(audit).models if entry["name"] in names] if audit else []
    read = {"captions": counts.captions, "digest": digest([tally.digest for tally in counts.files])}
    record = Record(  # the captions come first, then the audited models
        studies=[EXPOSURE.name],
        settings={**settings, "identity scores of": str(audit) if audit else None},
        models=[{"name": name, "adapter": "captions", **read, "files": [t.path for t in counts.files]}, *audited],
        left_out=[line for tally in counts.files for line in tally.remarks],
    )
    of_people = {"origin": DATASETS["apa"].origin, "people": people.height, "notes": list(dataset.notes)}
    record.add_dataset({"name": dataset.name, "revision": dataset.revision, "licence": dataset.licence, **of_people})
    return Measured(pl.concat(tables), record, {"people.csv": as_csv(people)} if given.get("people") else {})
