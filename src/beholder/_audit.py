"""The straight line: data set × prompts → scores → measures → results → page.

run = beholder.audit("openai/clip-vit-base-patch32", STUDY, data="data")
run = audit_models(["openai/clip-vit-base-patch32"], [STUDY], AuditOptions(out=Path("run"), store=Path("store")))
"""

import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from beholder._options import AuditOptions
from beholder._run import Run, finish, folder_name, refuse_other_weights, run_folder
from beholder.core.digests import digest
from beholder.core.errors import MissingExtra, UsageError
from beholder.core.files import Place
from beholder.core.progress import followed_by
from beholder.core.record import Record
from beholder.core.results import results_table
from beholder.core.types import Entry
from beholder.models.load import Kind, Model, ModelIdentity, as_scorer, decoding_on_gpu, load_model
from beholder.models.scorer import LIMIT, NUDGE, Answerer, Scorer, movement, shaken
from beholder.models.spec import ModelSpec, device_names
from beholder.report.exports import headline_numbers
from beholder.report.page import write_page
from beholder.scores.fill import fill
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.scores.scoring import on_ray
from beholder.scores.store import Places, Store, stored_scores
from beholder.studies import STUDIES
from beholder.studies.inquiry import Inquiry, chosen_studies, open_inquiries
from beholder.studies.study import MeasureOptions, Study


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
    identity = ModelIdentity(name, revision, kind, logit_scale)
    several = models if isinstance(models, list) else [] if models is None else [models]
    if (name or revision) and len(several) != 1:
        raise UsageError("name= and revision= are those of one model. Audit the models one by one.")
    named = [studies] if isinstance(studies, str | Study) else list(studies or ())
    chosen = AuditOptions.of(**options)
    if any(isinstance(each, Study) for each in named):
        studies = [STUDIES[each] if isinstance(each, str) else each for each in named]
    else:
        own, data, dataset = chosen.study_options, chosen.data, chosen.dataset
        studies = chosen_studies([str(each) for each in named], own, data=data, dataset=dataset, models=several)
    ready = [str(each) if isinstance(each, str | Path) else as_scorer(each, chosen.load, identity) for each in several]
    return audit_models(ready, studies, chosen)


def audit_models(models: Sequence[str | Scorer], studies: Sequence[str | Study], options: AuditOptions) -> Run:
    """Audit every model with every study, written one by one; without models, the embedded ones with their studies."""
    run = new_run(options)
    asked = [STUDIES[study] if isinstance(study, str) else study for study in studies]
    inquiries = [inquiry for study in asked for inquiry in open_inquiries(study, options, run.record)]
    embedded = dict.fromkeys(name for study in asked for name in study.asks.reference_models)
    audited: list[str | Scorer] = list(models or embedded)
    names = [each if isinstance(each, str) else each.spec.name for each in audited]
    todo = {name: [each for each in inquiries if models or name in each.study.asks.reference_models] for name in names}
    digests = [each if isinstance(each, str) else each.spec.digest for each in audited]
    run.record.digest = run_digest(run, digests, inquiries, options)
    run.places, run.asked = Places(options.data, options.store, options.settings), (asked, options)
    with run_folder(run.record, options.out, folder_name(names, run.record.studies)) as (run.folder, earlier):
        before, started = run.record.seconds, time.monotonic()
        later = sum(len(each.dataset) for mine in todo.values() for each in mine) * (1 + options.perturb)
        for model, name in zip(audited, names, strict=True):
            with _opened(model, options) as scorer:
                options = replace(options, store=_store_for(scorer, run))
                confirm_upload(scorer, inquiries, options)
                for inquiry in todo[name]:
                    for change, each in {"": inquiry, **inquiry.changed(options.perturb)}.items():
                        later -= len(each.dataset)
                        run.add(_audited(scorer, each, options, run, later), change)
                    if options.decode == "both":
                        matrices = filled(decoding_on_gpu(scorer), inquiry, options)
                        again = measure(inquiry, matrices, options.measure, model=scorer.spec.name)
                        run.add(again, "JPEG files decoded on the GPU (--decode gpu)")
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


def _store_for(scorer: Scorer, run: Run) -> Place:
    """The store; for scores of unknown origin, one that goes with the run."""
    assert run.places is not None
    if not getattr(scorer, "temporary", False):
        return run.places.store
    run.own_stores.append(Path(tempfile.mkdtemp(prefix="beholder-store-")))
    weakref.finalize(run, shutil.rmtree, run.own_stores[-1], ignore_errors=True)
    return run.own_stores[-1]


def _audited(scorer: Scorer, inquiry: Inquiry, options: AuditOptions, run: Run, later: int) -> pl.DataFrame:
    """One model with one study: fill what the store lacks, then measure; so many images come later in the run."""
    options = replace(options, progress=followed_by(options.progress, later))
    matrices = filled(scorer, inquiry, options, run)
    with options.progress(f"{scorer.spec.name}: measuring {inquiry.study.name}", 0, 0):
        results = measure(inquiry, matrices, options.measure, model=scorer.spec.name)
        report_rounding(scorer, inquiry, matrices, options, run)
        return results


# The steps of an audit, which comparing, measuring and verifying take too: ask, fill, measure, write


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
    """Scores that rounding moves far are recorded, with what noise of that size does to every finding."""
    moved = movement(scorer, matrices[0].prompts["text"].head(SHOWN).to_list())
    if moved is None or moved[0] <= LIMIT:
        return
    run.record.add_rounding(scorer.spec.name, float(moved[0]), nudge=NUDGE)
    rng = np.random.default_rng(options.seed)
    noisy = [replace(matrix, values=shaken(matrix.values, moved, rng)) for matrix in matrices]
    again = measure(inquiry, noisy, options.measure, model=scorer.spec.name)
    run.add(again, f"{scorer.spec.name}: every score moved by up to {moved[0]:.2g}, as rounding moves it")


def filled(scorer: Scorer, inquiry: Inquiry, options: AuditOptions, run: Run | None = None) -> list[ScoreMatrix]:
    """The model's scores of all that the study asks; the run's record says how it was asked."""
    scorer, tasks = _asked(scorer, inquiry, compat=options.compat)
    done = fill(tasks, scorer, Store(options.store), options.fill)
    if run is not None:
        run.add_prompts(inquiry.study.name, tasks)
        run.record.add_model({**scorer.spec.as_dict(), "notes": list(getattr(scorer, "notes", []))})
        run.record.add_bad_images(done.bad_images)
    return done.matrices


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


# While a model is trained: Trainer(model, …, callbacks=[beholder.callback(every=1000, study="apa", data="data")])


@dataclass(eq=False)
class Audits:
    """Audits a model while it is trained; `callback` makes a callback of transformers of it."""

    every: int
    processor: Any
    out: Path | str | None
    store: Path | str | None
    options: Entry  # those of `beholder.audit`
    runs: dict[int, Run] = field(default_factory=dict)  # by step
    trainer: Any = None  # if it is set, numbers go to its trackers too

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Say what is missing before the first step."""
        if self.processor is None and given.get("processing_class") is None:
            raise UsageError(
                "How pictures and texts are prepared is not known: give the Trainer its processing_class, or "
                "beholder.callback its processor."
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if state.global_step % self.every == 0:
            self.audit(args, state, **given)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if state.global_step not in self.runs:
            self.audit(args, state, **given)

    def audit(self, args: Any, state: Any, *, model: Any, processing_class: Any = None, **_: Any) -> None:
        """Audit the model as it is now, and log the headline numbers."""
        import torch  # an extra, and slow to import

        if not state.is_world_process_zero:
            return
        folder = Path(self.out or Path(args.output_dir) / "beholder")
        prepared = processing_class if self.processor is None else self.processor
        parts = prepared if isinstance(prepared, tuple) else (prepared,)
        name, place = f"step {state.global_step}", folder / f"step-{state.global_step}"
        with torch.random.fork_rng():  # so that training draws the numbers that it would have drawn
            run = audit((model, *parts), name=name, out=place, store=self.store or folder / "store", **self.options)
        self.runs[state.global_step] = run
        numbers = {f"beholder/{name}": value for name, value in headline_numbers(run.report).items()}
        if self.trainer is not None:
            self.trainer.log(numbers)
        else:
            state.log_history.append({**numbers, "epoch": state.epoch, "step": state.global_step})


def callback(
    every: int = 1000,
    *,
    study: Any = None,
    processor: Any = None,
    out: Path | str | None = None,
    store: Path | str | None = None,
    **options: Any,
) -> Any:
    """A `TrainerCallback` of transformers that audits the model every so many steps, and at the end.

    >>> callback(every=0)
    Traceback (most recent call last):
    beholder.core.errors.UsageError: every=0: audit every so many steps, 1 or more.

    The headline numbers go into the trainer's log (`trainer.state.log_history`) under `beholder/…`, each with its
    interval; after `callback.trainer = trainer`, to the trackers of its `report_to` too. `callback.runs` has the runs
    by step. They are written to `out`, which is the folder `beholder` of the trainer's own if it is not said.

    `processor` is needed if the trainer has no `processing_class`. All other options are those of `beholder.audit`.
    A copy of the model is audited; training goes on as it would without.
    """
    if every < 1:
        raise UsageError(f"every={every}: audit every so many steps, 1 or more.")
    try:
        from transformers import TrainerCallback  # an extra, and slow to import
    except ImportError as error:
        raise MissingExtra("An audit while a model is trained", "torch") from error
    kind = type("Audits", (Audits, TrainerCallback), {})
    return kind(every, processor, out, store, {"studies": study, **options})
