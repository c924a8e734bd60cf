"""The straight line: data set × prompts → scores → measures → results → page.

run = audit_models(["openai/clip-vit-base-patch32"], ["apa"], AuditOptions(data=Path("data"), out=Path("runs/clip")))
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from beholder.core.errors import BadScores
from beholder.core.results import results_table
from beholder.datasets import DATASETS, open_dataset
from beholder.datasets.dataset import Dataset
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Answerer, Scorer
from beholder.report.page import write_report
from beholder.run import Run, load_run
from beholder.scores.fill import FillOptions, fill
from beholder.scores.imported import import_scores
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.store import Store
from beholder.scores.task import Task
from beholder.studies import BENCHMARKS
from beholder.studies.study import Benchmark, MeasureOptions

REFERENCE = {
    "glasshouse/contrastive": ("apa", "pfi", "disparity", "perception"),
    "null": ("apa", "pfi"),
    "glasshouse/generative": ("gras",),
}
"""Which embedded models are audited on a benchmark when none is named: those with something planted, and noise."""
ANY = ("glasshouse/contrastive", "null")
DEMO = ("apa", "gras", "disparity")
"""What is asked when neither model, benchmark nor data are named."""


@dataclass(frozen=True)
class AuditOptions:
    """Everything about a run but its models and benchmarks."""

    out: Path
    store: Path
    data: Path | None = None
    dataset: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """How the data set is read, where there is a choice."""
    limit: int | None = None
    load: LoadOptions = field(default_factory=LoadOptions)
    fill: FillOptions = field(default_factory=FillOptions)
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    beside: Sequence[Path] = ()
    """Folders of other runs, whose results are set beside these where a benchmark knows how."""
    command: Sequence[str] = ()
    """What the user typed, for the record."""


def audit_models(models: Sequence[str], benchmarks: Sequence[str | Benchmark], options: AuditOptions) -> Run:
    """Audit every model on every benchmark; without models, the embedded ones on what each was made for.

    What is finished is written before the next begins.
    """
    run, started, others = Run(), time.monotonic(), _results_beside(options)
    sheets = [sheet for benchmark in benchmarks for sheet in open_sheets(benchmark, options, run)]
    embedded = dict.fromkeys(model for benchmark, _ in sheets for model in reference_models(benchmark))
    for name in models or embedded:
        scorer = load_model(name, options.load)
        for benchmark, dataset in sheets:
            if not models and name not in reference_models(benchmark):
                continue
            run.add(audit_one(scorer, benchmark, dataset, options, run))
            run.record.seconds = round(time.monotonic() - started, 1)
            run.save(options.out)
    _set_beside(run, [benchmark for benchmark, _ in sheets], others, compat=options.measure.compat)
    return _written(run, options)


def reference_models(benchmark: Benchmark) -> tuple[str, ...]:
    """The embedded models with something to show on a benchmark; on one's own, the first, and noise beside it."""
    return tuple(model for model, asked in REFERENCE.items() if benchmark.name in asked) or ANY


def _results_beside(options: AuditOptions) -> pl.DataFrame:
    """The results of other runs; read before any work, so that a wrong folder is told at once."""
    return pl.concat([Run().results, *(load_run(folder).results for folder in options.beside)])


def _set_beside(run: Run, benchmarks: Sequence[Benchmark], others: pl.DataFrame, *, compat: bool) -> None:
    """What only several models, data sets or runs together can tell."""
    for benchmark in {each.name: each for each in benchmarks}.values():
        if benchmark.across is not None:
            mine = pl.col("benchmark") == benchmark.name
            run.add(benchmark.across(run.results.filter(mine), others.filter(mine), compat))


def asked(scorer: Scorer, benchmark: Benchmark, options: AuditOptions) -> Scorer:
    """The model as the benchmark asks it: one that answers in words is given the benchmark's instruction."""
    if not isinstance(scorer, Answerer):
        return scorer
    released = benchmark.compat_instruction if options.measure.compat else None
    return scorer.instructed(released(scorer.spec) if released else benchmark.instruction)


def audit_one(scorer: Scorer, benchmark: Benchmark, dataset: Dataset, options: AuditOptions, run: Run) -> pl.DataFrame:
    """One model on one benchmark: fill what the store lacks, then measure."""
    matrices, name = filled_sheets(scorer, benchmark, dataset, options, run), scorer.spec.name
    with options.fill.progress(f"{name}: measuring {benchmark.name}", 0, 0):
        return measure(benchmark, matrices, options.measure, model=name, dataset=dataset.name)


def filled_sheets(
    scorer: Scorer, benchmark: Benchmark, dataset: Dataset, options: AuditOptions, run: Run
) -> list[ScoreMatrix]:
    """What a model says to all that a benchmark asks it; the record says how it was asked."""
    answers, looks = isinstance(scorer, Answerer), "presence" in scorer.channels
    tasks = benchmark.tasks_for(dataset, answers=answers, looks=looks, compat=options.measure.compat)
    scorer = asked(scorer, benchmark, options)
    filled = fill(tasks, scorer, Store(options.store), options.fill)
    run.add_prompts(benchmark.name, tasks)
    run.record.add_model({**scorer.spec.as_dict(), "notes": list(getattr(scorer, "notes", []))})
    known = {entry["image"] for entry in run.record.bad_images}
    run.record.bad_images += [
        {"image": uri, "reason": reason} for uri, reason in filled.bad_images.items() if uri not in known
    ]
    return filled.matrices


def measure(
    benchmark: Benchmark, matrices: Iterable[ScoreMatrix], options: MeasureOptions, *, model: str, dataset: str
) -> pl.DataFrame:
    """Everything the benchmark reads off the matrices, as the tidy table."""
    sheets = {matrix.task: matrix for matrix in matrices}
    rows = [row for measure_rows in benchmark.measures for row in measure_rows(sheets, options)]
    return results_table(rows, benchmark=benchmark.name, model=model, dataset=dataset)


def measure_scores(benchmark: Benchmark, scores: Sequence[Path], options: AuditOptions, *, model: str) -> Run:
    """The same line with scores made elsewhere in the place of a model."""
    run, others = Run(), _results_beside(options)
    options = replace(options, dataset=options.dataset or _scored_dataset(benchmark, scores, options))
    _, dataset = _open(benchmark, options, run, scored=False)
    tasks = benchmark.tasks_for(dataset, answers=True, compat=options.measure.compat)
    imported = import_scores(scores, tasks)
    run.add_prompts(benchmark.name, tasks)
    run.record.left_out += imported.left_out
    run.record.models.append({"name": model, "adapter": "imported scores", "files": [str(path) for path in scores]})
    with options.fill.progress(f"{model}: measuring {benchmark.name}", 0, 0):
        run.add(measure(benchmark, imported.matrices, options.measure, model=model, dataset=dataset.name))
    _set_beside(run, [benchmark], others, compat=options.measure.compat)
    return _written(run, options)


def _written(run: Run, options: AuditOptions) -> Run:
    """The run, in its folder with its page."""
    run.save(options.out)
    with options.fill.progress("drawing the page", 0, 0):
        write_report(run, options.out)
    return run


def open_tasks(benchmark: Benchmark, *, data: Path | None = None) -> Sequence[Task]:
    """A benchmark's tasks on its own data, or on the embedded world when there is no data."""
    return benchmark.tasks(open_dataset(default_dataset(benchmark, data), data))


def open_sheets(name: str | Benchmark, options: AuditOptions, run: Run) -> Iterator[tuple[Benchmark, Dataset]]:
    """A benchmark with its data; one that is asked everywhere, with each of its data sets that is at hand."""
    benchmark = BENCHMARKS[name] if isinstance(name, str) else name
    if options.dataset or options.data is None or not benchmark.everywhere:
        yield _open(benchmark, options, run)
        return
    for each in datasets_here(benchmark, options.data):
        yield _open(benchmark, replace(options, dataset=each), run)


def datasets_here(benchmark: Benchmark, data: Path) -> list[str]:
    """Its data sets that lie in the folder; none at all: the first, and opening it says what to do."""
    sources = [DATASETS[each] for each in benchmark.datasets if not DATASETS[each].embedded]
    return [source.name for source in sources if source.folder(data).is_dir()] or [sources[0].name]


def _scored_dataset(benchmark: Benchmark, scores: Sequence[Path], options: AuditOptions) -> str | None:
    """Which of a benchmark's data sets the scores are about, where it has several; None where it has not."""
    if not benchmark.everywhere or options.data is None:
        return None
    names = datasets_here(benchmark, options.data)
    for name in names[:-1]:  # the last is taken as it is, and says what does not fit
        try:
            import_scores(scores, benchmark.tasks(open_dataset(name, options.data, options.settings)))
        except BadScores:
            continue
        return name
    return names[-1]


def _open(name: str | Benchmark, options: AuditOptions, run: Run, *, scored: bool = True) -> tuple[Benchmark, Dataset]:
    """A benchmark with its data; the record says what they are."""
    benchmark = BENCHMARKS[name] if isinstance(name, str) else name
    source = options.dataset or default_dataset(benchmark, options.data)
    whole = open_dataset(source, options.data, options.settings)
    whole = whole.present() if scored else whole
    dataset = whole.limit(options.limit, by=benchmark.subset_attribute)
    if benchmark.name not in run.record.benchmarks:
        run.record.benchmarks.append(benchmark.name)
        if not _as_it_came(benchmark):
            run.record.declared[benchmark.name] = benchmark.declaration()
    run.record.command = list(options.command)
    run.record.settings = {
        "compat": options.measure.compat,
        "draws": options.measure.draws,
        "seed": options.measure.seed,
        "delta": options.measure.delta,
        "limit": options.limit,
        "device": options.load.device,
        "precision": options.load.precision,
    }
    if dataset.name not in [entry["name"] for entry in run.record.datasets]:
        run.record.datasets.append(
            {
                "name": dataset.name,
                "revision": dataset.revision,
                "licence": dataset.licence,
                "origin": DATASETS[source].origin if source in DATASETS else source,
                "images": len(dataset),
                "of": len(whole),
                "notes": list(dataset.notes),
            }
        )
    return benchmark, dataset


def _as_it_came(benchmark: Benchmark) -> bool:
    """Whether it measures what Beholder's benchmark of that name does: then its page is known without a record."""
    known = BENCHMARKS.came_with_beholder(benchmark.name)
    return known and BENCHMARKS[benchmark.name].metrics == benchmark.metrics


def default_dataset(benchmark: Benchmark, data: Path | None) -> str:
    """The study's own data, or the embedded world when no folder was named and the benchmark knows it."""
    embedded = [name for name in benchmark.datasets if DATASETS[name].embedded]
    if data is None:
        return (embedded or benchmark.datasets)[0]
    return datasets_here(benchmark, data)[0] if benchmark.everywhere else benchmark.datasets[0]
