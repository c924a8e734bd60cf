"""Exposure, from caption files to a page: APA's Section 4 on any captions."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from beholder.core.digests import digest, file_digest
from beholder.core.errors import UsageError
from beholder.core.files import write_whole
from beholder.core.progress import Progress, silent
from beholder.core.results import results_table
from beholder.datasets import DATASETS, open_dataset
from beholder.report.page import write_report
from beholder.run import Run, load_run
from beholder.studies.apa.study import APA
from beholder.studies.exposure.captions import CaptionFile
from beholder.studies.exposure.counting import Counts, count_captions
from beholder.studies.exposure.identity import identity_scores
from beholder.studies.exposure.measures import METRICS, count_rows, identity_rows, word_rows
from beholder.studies.exposure.mentions import Mentions, Term
from beholder.studies.exposure.people import NAME, WORD_TERMS, people_of
from beholder.studies.study import Benchmark, MeasureOptions

EXPOSURE = Benchmark(
    name="exposure",
    title="Exposure: who is named in captions",
    question="How often do captions name the people of APA and say its words; are women named less; does a model know "
    "best whom captions name most?",
    study=APA.study,
    datasets=("apa",),
    tasks=APA.tasks,
    measures=(),
    metrics=METRICS,
    of_photographs=APA.of_photographs,
    limitations=(
        "A caption names a person when it says all words of the name as APA's table spells it, in order; other "
        "spellings, nicknames and bare surnames are not counted, and namesakes are.",
        "Capitals, accents and punctuation do not matter; words are counted as they stand, plurals are other words.",
        "These are the captions that were given: how often a model saw them is not known.",
        "Means of counts are decided by a few famous people, and their intervals can hold the truth in 79 of 100 cases "
        "instead of 95. The typical ratio and the median are the safer numbers.",
        "Each branch has its own 95 % interval: even if nothing were there, about one in twenty would exclude alike.",
        "A correlation with identity is no cause: who is named often is also photographed often.",
    ),
)


@dataclass(frozen=True)
class ExposureOptions:
    """Everything about a count but its captions."""

    out: Path
    store: Path
    data: Path | None = None
    column: str | None = None
    name: str | None = None
    """What to call the captions; else the name of their file."""
    run: Path | None = None
    """An APA audit, whose identity scores are set beside the counts."""
    people: bool = False
    """Whether to write the count of every person."""
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    progress: Progress = silent
    command: Sequence[str] = ()


def expose(captions: Sequence[Path], options: ExposureOptions) -> Run:
    """Count, measure, and leave a run folder with its page; what can be wrong is asked before anything is counted."""
    if options.run and options.out.resolve() == options.run.resolve():
        raise UsageError(f"--out {options.out} is the audit itself, which would be lost. Name another folder.")
    started, dataset = time.monotonic(), open_dataset("apa", options.data)
    files = [CaptionFile(path, options.column) for path in captions]
    people = people_of(dataset)
    scores = identity_scores(options.run, dataset, options.store) if options.run else {}
    mentions = Mentions([*(Term(NAME, name) for name in people[NAME]), *WORD_TERMS])
    counts = count_captions(files, mentions, options.progress)
    people = people.with_columns(
        captions=pl.Series(counts.apart[: people.height]), inside=pl.Series(counts.inside[: people.height])
    )
    run = _measured(people, counts, scores, options.name or _called(captions), options.measure)
    run.record.datasets.append(
        {
            "name": dataset.name,
            "revision": dataset.revision,
            "licence": dataset.licence,
            "origin": DATASETS["apa"].origin,
            "people": people.height,
            "notes": list(dataset.notes),
        }
    )
    _record(run, counts, options)
    run.record.seconds = round(time.monotonic() - started, 1)
    run.save(options.out)
    if options.people:
        buffer = io.BytesIO()
        people.write_csv(buffer)
        write_whole(options.out / "people.csv", buffer.getvalue())
    write_report(run, options.out)
    return run


def _measured(
    people: pl.DataFrame, counts: Counts, scores: dict[str, pl.DataFrame], called: str, options: MeasureOptions
) -> Run:
    """The captions stand in the model's column of what is said of them alone."""
    run = Run()
    rows = [*count_rows(people, options), *word_rows(counts, people.height)]
    run.add(results_table(rows, benchmark=EXPOSURE.name, model=called, dataset="apa"))
    for model, identity in scores.items():
        known = people.join(identity, on=["branch", "name"], how="inner", maintain_order="left")
        rows = list(identity_rows(known, options))
        run.add(results_table(rows, benchmark=EXPOSURE.name, model=model, dataset="apa"))
    return run


def _record(run: Run, counts: Counts, options: ExposureOptions) -> None:
    """How the numbers came about, with what could not be read."""
    record = run.record
    record.benchmarks, record.command = [EXPOSURE.name], list(options.command)
    record.declared[EXPOSURE.name] = EXPOSURE.declaration()
    record.settings = {
        "column": options.column,
        "draws": options.measure.draws,
        "seed": options.measure.seed,
        "identity scores of": str(options.run) if options.run else None,
    }
    files = [tally.path for tally in counts.files]
    with options.progress("digesting the captions", 0, 0):
        digests = [file_digest(Path(path)) for path in files]
    record.models.append(
        {
            "name": run.results["model"][0],
            "adapter": "captions",
            "captions": counts.captions,
            "digest": digest(digests),
            "files": files,
        }
    )
    audited = load_run(options.run).record.models if options.run else []
    record.models += [entry for entry in audited if entry["name"] in set(run.results["model"])]
    record.left_out += [line for tally in counts.files for line in tally.remarks]


def _called(captions: Sequence[Path]) -> str:
    return captions[0].name if len(captions) == 1 else f"{captions[0].name} and {len(captions) - 1} more"
