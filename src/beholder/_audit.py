"""The straight line: data set × prompts → scores → measures → results → page.

run = beholder.audit("openai/clip-vit-base-patch32", STUDY, data="data")
run = audit_models(["openai/clip-vit-base-patch32"], [STUDY], AuditOptions(out=Path("run"), store=Path("store")))
"""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from beholder._options import AuditOptions
from beholder._run import Run
from beholder._run_folder import finish, folder_name, refuse_other_weights, run_folder
from beholder.core.digests import digest
from beholder.core.errors import UsageError
from beholder.core.files import Place
from beholder.core.progress import followed_by
from beholder.core.results import results_table
from beholder.datasets.images import CHANGES
from beholder.models.load import Kind, Model, ModelIdentity, as_scorer, decoding_on_gpu, load_model
from beholder.models.scorer import LIMIT, NUDGE, Answerer, Scorer, movement, shaken
from beholder.models.spec import ModelSpec, device_names
from beholder.report.page import write_page
from beholder.scores.fill import fill
from beholder.scores.ray_scorer import on_ray
from beholder.scores.recorded import Places, stored_scores
from beholder.scores.score_matrix import ScoreMatrix, Task, is_detector
from beholder.scores.store import Store
from beholder.studies import STUDIES
from beholder.studies.sheets import Sheet, chosen_studies, open_sheets
from beholder.studies.study import MeasureOptions, Study

SHOWN = 8
"""Prompts by which the stability of a model's scores is looked at."""


def audit(
    models: Model | list[Model] | None = None,
    studies: str | Study | Sequence[str | Study] | None = None,
    *,
    name: str | None = None,
    revision: str | None = None,
    kind: Kind = "matching",
    logit_scale: float | None = None,
    **options: Any,
) -> Run:
    """Audit models, as `beholder audit` does and with its defaults.

    >>> from tempfile import TemporaryDirectory
    >>> def brightness(images, prompts):  # any function that scores every image with every prompt
    ...     return [[sum(image.resize((1, 1)).getpixel((0, 0))) / 100 for _ in prompts] for image in images]
    >>> with TemporaryDirectory() as folder:
    ...     run = audit(brightness, "apa", limit=4, draws=100, out=f"{folder}/run")
    >>> run.findings[0].model
    'brightness'

    A model is a name, a `Scorer`, `(model, processor)` of transformers, `(model, preprocess, tokenizer)` of open_clip,
    or a function `(images, prompts) -> scores`. Several models, or several studies, go in a list. Objects are
    copied, and `name` says what to call them. Scores of a function are kept only if `name` and `revision` say what they
    belong to; `kind` says whether they are logits ("matching") or cosines ("contrastive", with `logit_scale`).

    `options` are the fields of `AuditOptions`, which are the options of `beholder audit`, and the studies' own options:
    `prompts="mine.csv", by="gender"`. Paths may be strings. `engine="ray"` (or `"ray://HOST:PORT"`) scores by Ray's
    workers.
    """
    given = ModelIdentity(name, revision, kind, logit_scale)
    several = models if isinstance(models, list) else [] if models is None else [models]
    if (name or revision) and len(several) != 1:
        raise UsageError("name= and revision= are those of one model. Audit the models one by one.")
    named = [studies] if isinstance(studies, str | Study) else list(studies or ())
    asked = AuditOptions.of(**options)
    if any(isinstance(each, Study) for each in named):
        studies = [STUDIES[each] if isinstance(each, str) else each for each in named]
    else:
        names = [str(each) for each in named]
        studies = chosen_studies(names, asked.study_options, data=asked.data, dataset=asked.dataset, models=several)
    ready = [str(each) if isinstance(each, str | Path) else as_scorer(each, asked.load, given) for each in several]
    return audit_models(ready, studies, asked)


def audit_models(models: Sequence[str | Scorer], studies: Sequence[str | Study], options: AuditOptions) -> Run:
    """Audit every model with every study; without models, the embedded ones with the studies made for them.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     options = AuditOptions(out=Path(folder, "run"), store=Path(folder, "store"), limit=2)
    ...     run = audit_models(["null"], ["apa"], options)
    >>> run.record.models[0]["name"]
    'null'

    What is finished is written before the next begins. `audit` does the same with plain arguments.
    """
    run = begun(options)
    asked = [STUDIES[study] if isinstance(study, str) else study for study in studies]
    sheets = [sheet for study in asked for sheet in open_sheets(study, options, run.record)]
    embedded = dict.fromkeys(name for study in asked for name in study.asks.reference_models)
    asked_of: list[str | Scorer] = list(models or embedded)
    names = [each if isinstance(each, str) else each.spec.name for each in asked_of]
    digests = [each if isinstance(each, str) else each.spec.digest for each in asked_of]
    run.record.digest = run_digest(run, digests, sheets, options)
    run.places, run.asked = Places(options.data, options.store, options.settings), (asked, options)
    with run_folder(run.record, options.out, folder_name(names, run.record.studies)) as (run.folder, earlier):
        before, started = run.record.seconds, time.monotonic()
        todo = [sheet for name in names for sheet in sheets if models or name in sheet.study.asks.reference_models]
        later = sum(len(sheet.dataset) for sheet in todo) * (1 + options.perturb)
        for model, name in zip(asked_of, names, strict=True):
            with _opened(model, options) as scorer:
                options = replace(options, store=_store_for(scorer, run))
                confirm_upload(scorer, sheets, options)
                for sheet in sheets:
                    if models or name in sheet.study.asks.reference_models:
                        later -= len(sheet.dataset)
                        run.add(_audited(scorer, sheet, _followed_by(options, later), run))
                        for change in _changes(options):
                            later -= len(sheet.dataset)
                            changed = sheet._replace(dataset=sheet.dataset.perturbed(change))
                            run.add_perturbed(_audited(scorer, changed, _followed_by(options, later), run), change)
                        if options.decode == "both":
                            again = _measured_again(decoding_on_gpu(scorer), sheet, options)
                            run.add_perturbed(again, "JPEG files decoded on the card (--decode gpu)")
                        refuse_other_weights(earlier, run.record, run.folder)
                        run.record.seconds = round(before + time.monotonic() - started, 1)
                        run.save(run.folder)
        return written(run, asked, options)


def _opened(model: str | Scorer, options: AuditOptions) -> AbstractContextManager[Scorer]:
    """The model, ready to score, in this process or on Ray."""
    if options.decode == "both" and (options.ray or len(device_names(options.device)) > 1):
        raise UsageError("--decode both compares two ways on one device: leave out --engine, and name one --device.")
    if options.ray:
        return on_ray(model, options.load, options.ray)
    return nullcontext(load_model(model, options.load) if isinstance(model, str) else model)


def _followed_by(options: AuditOptions, later: int) -> AuditOptions:
    """The options, with progress that knows how many images come later in the run."""
    return replace(options, progress=followed_by(options.progress, later))


def _store_for(scorer: Scorer, run: Run) -> Place:
    """The store; for scores that nothing says the origin of, one that goes with the run."""
    assert run.places is not None
    if not getattr(scorer, "temporary", False):
        return run.places.store
    run.own_stores.append(Path(tempfile.mkdtemp(prefix="beholder-store-")))
    weakref.finalize(run, shutil.rmtree, run.own_stores[-1], ignore_errors=True)
    return run.own_stores[-1]


def run_digest(run: Run, models: Sequence[object], sheets: Sequence[Sheet], options: AuditOptions) -> str:
    """Which run it is: what is asked of which models about which data, and how it is measured."""
    asked = [
        [sheet.study.name, sheet.dataset.name, sheet.dataset.revision, len(sheet.dataset), prompts]
        for sheet in sheets
        for prompts in [sorted({task.prompts.digest for task in sheet.study.asks.tasks(sheet.dataset)})]
    ]
    settings = {name: value for name, value in run.record.settings.items() if name != "device"}
    chosen = [{name: str(value) for name, value in each.items()} for each in (options.settings, options.study_options)]
    return digest([list(map(str, models)), asked, settings, *chosen, options.decode])


def _changes(options: AuditOptions) -> list[str]:
    """The small changes of the pictures after which everything is measured again."""
    return list(CHANGES)[: options.perturb]


def _audited(scorer: Scorer, sheet: Sheet, options: AuditOptions, run: Run) -> pl.DataFrame:
    """One model with one study: fill what the store lacks, then measure."""
    matrices = filled(scorer, sheet, options, run)
    with options.progress(f"{scorer.spec.name}: measuring {sheet.study.name}", 0, 0):
        results = measure(sheet, matrices, options.measure, model=scorer.spec.name)
        _report_rounding(scorer, sheet, matrices, options, run)
        return results


def _report_rounding(
    scorer: Scorer, sheet: Sheet, matrices: Sequence[ScoreMatrix], options: AuditOptions, run: Run
) -> None:
    """Scores that rounding moves far are recorded, with what noise of that size does to every finding."""
    moved = movement(scorer, matrices[0].prompts["text"].head(SHOWN).to_list())
    if moved is None or moved[0] <= LIMIT:
        return
    run.record.add_rounding(scorer.spec.name, float(moved[0]), nudge=NUDGE)
    rng = np.random.default_rng(options.seed)
    noisy = [replace(matrix, values=shaken(matrix.values, moved, rng)) for matrix in matrices]
    again = measure(sheet, noisy, options.measure, model=scorer.spec.name)
    run.add_perturbed(again, f"{scorer.spec.name}: every score moved by up to {moved[0]:.2g}, as rounding moves it")


def _measured_again(scorer: Scorer, sheet: Sheet, options: AuditOptions) -> pl.DataFrame:
    """What is measured if the scorer stands in for that of the run, which keeps its name."""
    scorer, tasks = _asked(scorer, sheet, compat=options.compat)
    done = fill(tasks, scorer, Store(options.store), options.fill)
    return measure(sheet, done.matrices, options.measure, model=scorer.spec.name)


def filled(scorer: Scorer, sheet: Sheet, options: AuditOptions, run: Run) -> list[ScoreMatrix]:
    """The model's scores of all that the study asks; the record says how it was asked."""
    scorer, tasks = _asked(scorer, sheet, compat=options.compat)
    done = fill(tasks, scorer, Store(options.store), options.fill)
    run.add_prompts(sheet.study.name, tasks)
    run.record.add_model({**scorer.spec.as_dict(), "notes": list(getattr(scorer, "notes", []))})
    run.record.add_bad_images(done.bad_images)
    return done.matrices


def from_store(specs: Iterable[ModelSpec], sheet: Sheet, options: AuditOptions) -> list[ScoreMatrix] | None:
    """What an earlier run of a model left in the store, read without the model; None where something is not there.

    `specs` are the ways in which the model was asked. Images that could not be read are left out.
    """
    store, compat = Store(options.store), options.compat
    for spec in specs:
        told = bool({"answers", "instruction"} & set(spec.settings))  # how it was told to answer
        for answers, looks in ((told, False), (not told, False), (False, True)):
            tasks = sheet.study.tasks_for(sheet.dataset, answers=answers, looks=looks, compat=compat)
            matrices = stored_scores(tasks, spec, store)
            if len(matrices) == len(tasks):
                return matrices
    return None


def _asked(scorer: Scorer, sheet: Sheet, *, compat: bool) -> tuple[Scorer, list[Task]]:
    """The model, instructed as the study says, and all that it is asked."""
    study, answers, looks = sheet.study, isinstance(scorer, Answerer), is_detector(scorer.channels)
    tasks = study.tasks_for(sheet.dataset, answers=answers, looks=looks, compat=compat)
    if isinstance(scorer, Answerer):
        released = study.asks.compat_instruction if compat else None
        scorer = scorer.instructed(released(scorer.spec) if released else study.asks.instruction)
    return scorer, list(tasks)


def confirm_upload(scorer: Scorer, sheets: Iterable[Sheet], options: AuditOptions) -> None:
    """Raise unless the pictures that the store lacks, or that are scored again to verify it, may be sent to the server.

    It is asked once for all studies.
    """
    host = getattr(scorer, "uploads_to", "")
    if not host or options.allow_upload is True:
        return
    store, lacking = Store(options.store), set[str]()
    digests = store.image_digests()
    for sheet in sheets:
        changed = (sheet._replace(dataset=sheet.dataset.perturbed(change)) for change in _changes(options))
        for told, tasks in (_asked(scorer, each, compat=options.compat) for each in (sheet, *changed)):
            for task in tasks:
                keys = [key for key in digests.of(task.dataset.table["uri"].to_list()) if key]
                shelf = store.scores(told.spec, task.prompts.digest)
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


def measure(sheet: Sheet, matrices: Iterable[ScoreMatrix], options: MeasureOptions, *, model: str) -> pl.DataFrame:
    """Everything the study reads off the matrices, as the tidy table."""
    study, by_task = sheet.study, {matrix.task: matrix for matrix in matrices}
    rows = [row for measured in study.measures.functions for row in measured(by_task, options)]
    return with_landmarks(results_table(rows, study=study.name, model=model, dataset=sheet.dataset.name), study)


def with_landmarks(results: pl.DataFrame, study: Study) -> pl.DataFrame:
    """The results with the value that each metric has without any effect, where a row does not say its own."""
    known = {metric.name: metric.landmark for metric in study.measures.metrics}
    landmark = pl.col("metric").replace_strict(known, default=None, return_dtype=pl.Float64)
    return results.with_columns(landmark=pl.coalesce("landmark", landmark))


def begun(options: AuditOptions) -> Run:
    """A run with its settings recorded."""
    run = Run()
    run.record.command = list(options.command)
    run.record.settings = options.recorded()
    return run


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
