"""The steps of an audit, which comparing, measuring and verifying take too: ask, fill, measure, write."""

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from beholder._options import AuditOptions
from beholder._run import Run, finish
from beholder.core.digests import digest
from beholder.core.errors import UsageError
from beholder.core.files import Place
from beholder.core.record import Record
from beholder.core.results import results_table
from beholder.models.load import load_model
from beholder.models.scorer import LIMIT, Answerer, PictureTooLarge, Scorer, movement, nudge_of, redrawn, shaken
from beholder.models.spec import AS_SERVED, ModelSpec, device_names
from beholder.report.page import write_page
from beholder.scores.fill import fill
from beholder.scores.score_matrix import PICTURES, ScoreMatrix, Task
from beholder.scores.scoring import on_ray
from beholder.scores.store import Store, stored_scores
from beholder.studies.inquiry import Inquiry
from beholder.studies.study import MeasureOptions, Study

SHOWN = 8  # prompts by which the stability of a model's scores is looked at


def run_digest(run: Run, models: Sequence[object], inquiries: Sequence[Inquiry], options: AuditOptions) -> str:
    """Which run it is: what is asked of which models about which data, and how it is measured."""
    asked = [
        [inquiry.study.name, inquiry.dataset.name, inquiry.dataset.revision, len(inquiry.dataset), prompts]
        for inquiry in inquiries
        for prompts in [sorted({task.prompts.digest for task in inquiry.tasks(answers=True)})]
    ]
    settings = {name: value for name, value in run.record.settings.items() if name != "device"}
    chosen = [{name: str(value) for name, value in each.items()} for each in (options.settings, options.study_options)]
    return digest([list(map(str, models)), asked, settings, *chosen, options.decode])


def report_rounding(
    scorer: Scorer, inquiry: Inquiry, matrices: Sequence[ScoreMatrix], options: AuditOptions, run: Run
) -> None:
    """Scores that rounding moves far, or that are samples, are recorded, with what such noise does to every finding."""
    rng, name = np.random.default_rng(options.seed), scorer.spec.name
    if "draws" in matrices[0].channels:
        drawn = [replace(each, values=redrawn(each.values, each.channels, rng)) for each in matrices]
        again = measure(inquiry, drawn, options.measure, model=name)
        most = int(np.nanmax(matrices[0].channel("draws")))
        run.add(again, f"{name}: every answer drawn again ({most} answers a question)")
        return
    if matrices[0].kind == PICTURES:
        return
    moved = movement(scorer, matrices[0].prompts["text"].head(SHOWN).to_list())
    if moved is None or moved[0] <= LIMIT:
        return
    run.record.add_rounding(name, float(moved[0]), nudge=nudge_of(scorer.spec), precision=scorer.spec.precision)
    noisy = [replace(matrix, values=shaken(matrix.values, moved, rng)) for matrix in matrices]
    again = measure(inquiry, noisy, options.measure, model=name)
    run.add(again, f"{name}: every score moved by up to {moved[0]:.2g}, as rounding moves it")


def filled(scorer: Scorer, inquiry: Inquiry, options: AuditOptions, run: Run | None = None) -> list[ScoreMatrix]:
    """The model's scores of all that the study asks; the run's record says how it was asked."""
    asked, tasks = _asked(scorer, inquiry, compat=options.compat)
    try:
        done = fill(tasks, asked, Store(options.store), options.fill)
    except PictureTooLarge:
        smaller = getattr(scorer, "send_smaller", None)
        if smaller is None or not smaller():
            raise
        confirm_upload(scorer, [inquiry], options)  # pictures that were scored before are sent too
        return filled(scorer, inquiry, options, run)
    if run is not None:
        run.add_prompts(inquiry.study.name, tasks)
        undecided = _undecided(done.matrices) if asked.spec.precision == AS_SERVED else ()
        run.record.add_model({**asked.spec.as_dict(), "notes": [*getattr(asked, "notes", []), *undecided]})
        run.record.add_bad_images(done.bad_images)
        run.record.add_copies(inquiry.dataset.name, done.copies)
    return done.matrices


def _undecided(matrices: Sequence[ScoreMatrix]) -> Iterator[str]:
    """That cells are missing, and why, whether they were asked for now or came from the store."""
    absent = [np.asarray(np.isnan(matrix.values).any(axis=2)) for matrix in matrices]
    asked = [cells[~np.asarray(cells.all(axis=1))] for cells in absent]  # a picture without any score was not asked
    missing = sum(int(cells.sum()) for cells in asked)
    if missing:
        every = sum(matrix.images.height * matrix.prompts.height for matrix in matrices)
        yield (
            f"{missing:,} of {every:,} cells are missing: what the server returned leaves open which of the two words "
            "is likelier."
        )


def from_store(specs: Iterable[ModelSpec], inquiry: Inquiry, options: AuditOptions) -> list[ScoreMatrix] | None:
    """What runs of a model, asked in the ways of `specs`, left in the store; None where something is not there."""
    store, compat = Store(options.store), options.compat
    for spec in specs:
        instructed = bool({"answers", "instruction"} & set(spec.settings))
        for answers, detects in ((instructed, False), (not instructed, False), (False, True)):
            tasks = inquiry.tasks(answers=answers, detects=detects, compat=compat)
            matrices = stored_scores(tasks, spec, store)
            if len(matrices) == len(tasks):
                return matrices
    return None


def _asked(scorer: Scorer, inquiry: Inquiry, *, compat: bool) -> tuple[Scorer, Sequence[Task]]:
    """The model, instructed as the study says, and all that it is asked."""
    asks, answers = inquiry.study.asks, isinstance(scorer, Answerer)
    tasks = inquiry.tasks(answers=answers, detects="presence" in scorer.channels, compat=compat)
    if isinstance(scorer, Answerer):
        released = asks.compat_instruction if compat else None
        scorer = scorer.instructed(released(scorer.spec) if released else asks.instruction)
    return scorer, tasks


def confirm_upload(scorer: Scorer, inquiries: Iterable[Inquiry], options: AuditOptions) -> None:
    """Raise unless the pictures that have to be scored may be sent to the server; asked once for all studies."""
    host = getattr(scorer, "uploads_to", "")
    if not host or options.allow_upload is True:
        return
    store, lacking = Store(options.store), set[str]()
    digests = store.image_digests()
    for inquiry in inquiries:
        for each in (inquiry, *inquiry.changed(options.perturb).values()):
            asked, tasks = _asked(scorer, each, compat=options.compat)
            for task in tasks:
                keys = [key for key in digests.of(task.dataset.table["uri"].to_list()) if key]
                shelf = store.scores(asked.spec, task.prompts.digest)
                again = [keys[i] for i in shelf.one_of_each_block(keys)] if options.verify else ()
                lacking.update(shelf.missing(keys), again)
    if not lacking:
        return
    announced = f"{len(lacking):,} picture(s) will be sent to {host}, which may keep them."
    if not (callable(options.allow_upload) and options.allow_upload(announced)):
        raise UsageError(
            f"{announced} Nothing was sent yet.\n"
            "If the people shown and the owner of the pictures allow it, add --yes (in Python: allow_upload=True)."
        )


def measure(inquiry: Inquiry, matrices: Iterable[ScoreMatrix], options: MeasureOptions, *, model: str) -> pl.DataFrame:
    """Everything the study reads off the matrices, as the tidy table."""
    study, by_task = inquiry.study, {matrix.task: matrix for matrix in matrices}
    rows = [row for measured in study.measures.functions for row in measured(by_task, options)]
    return with_landmarks(results_table(rows, study=study.name, model=model, dataset=inquiry.dataset.name), study)


def with_landmarks(results: pl.DataFrame, study: Study) -> pl.DataFrame:
    """The results with the value that each metric has without any effect, where a row does not say its own."""
    known = {metric.name: metric.landmark for metric in study.measures.metrics}
    landmark = pl.col("metric").replace_strict(known, default=None, return_dtype=pl.Float64)
    return results.with_columns(landmark=pl.coalesce("landmark", landmark))


def new_run(options: AuditOptions) -> Run:
    """A run with its settings recorded."""
    return Run(record=Record(command=list(options.command), settings=options.recorded()))


def written(run: Run, studies: Sequence[Study], options: AuditOptions) -> Run:
    """The run in its folder, with what only several models or data sets together can tell, and with its page."""
    add_across(run, studies, options)
    assert run.folder is not None
    run.save(run.folder)
    with options.progress("drawing the page", 0, 0):
        run.save_findings(run.folder)
        write_page(run.report, run.folder)
    finish(run.record, run.folder)
    return run


def add_across(run: Run, studies: Sequence[Study], options: AuditOptions) -> None:
    """Add the rows that only several models or data sets together can tell."""
    for study in {each.name: each for each in studies}.values():
        if study.measures.across is not None:
            own = run.results.filter(pl.col("study") == study.name)
            run.add(with_landmarks(study.measures.across(own, options.compat), study))


def opened(model: str | Scorer, options: AuditOptions) -> AbstractContextManager[Scorer]:
    """The model, ready to score, in this process or on Ray."""
    if options.decode == "both" and (options.ray or len(device_names(options.device)) > 1):
        raise UsageError("--decode both compares two ways on one device: leave out --engine, and name one --device.")
    if options.ray:
        return on_ray(model, options.load, options.ray)
    return nullcontext(load_model(model, options.load) if isinstance(model, str) else model)


def store_for(scorer: Scorer, run: Run) -> Place:
    """The store; for scores of unknown origin, one that goes with the run."""
    assert run.places is not None
    if not getattr(scorer, "temporary", False):
        return run.places.store
    run.own_stores.append(Path(tempfile.mkdtemp(prefix="beholder-store-")))
    weakref.finalize(run, shutil.rmtree, run.own_stores[-1], ignore_errors=True)
    return run.own_stores[-1]
