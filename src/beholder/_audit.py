"""The straight line: data set × prompts → scores → measures → results → page.

run = beholder.audit("openai/clip-vit-base-patch32", STUDY, data="data")
run = audit_models(["openai/clip-vit-base-patch32"], [STUDY], AuditOptions(out=Path("run"), store=Path("store")))
"""

import shutil
import tempfile
import time
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from beholder._options import AuditOptions
from beholder._run import Run, folder_name, refuse_other_weights, run_folder
from beholder._steps import confirm_upload, filled, measure, new_run, report_rounding, run_digest, written
from beholder.core.errors import MissingExtra, NotAskable, UsageError
from beholder.core.files import Place
from beholder.core.progress import followed_by
from beholder.core.types import Entry
from beholder.models.load import (
    Kind,
    Model,
    ModelIdentity,
    as_scorer,
    decoding_on_gpu,
    load_model,
    refuse_unused,
    way_to_open,
)
from beholder.models.scorer import Scorer
from beholder.models.spec import device_names
from beholder.report.exports import headline_numbers
from beholder.scores.scoring import on_ray
from beholder.scores.store import Places
from beholder.studies import STUDIES
from beholder.studies.inquiry import Inquiry, add_not_compared, chosen_studies, open_inquiries
from beholder.studies.study import Study


def audit(
    models: Model | list[Model] | None = None,
    studies: str | Study | Sequence[str | Study] | object | None = None,
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
    belong to; `kind` says whether they are logits ("matching"), cosines ("contrastive", with `logit_scale`) or answers
    to whole questions, in words or as probabilities of yes ("generative").

    `dataset` is a name, a path, a DataFrame of polars or pandas, or a `datasets.Dataset`: with a column of paths or of
    pictures. It may stand in the place of the studies: `audit(model, frame, prompts=["a kind person"], by="gender")`.

    `options` are the fields of `AuditOptions`, which are the options of `beholder audit`, and the studies' own options:
    `prompts="mine.csv", by="gender"`. Paths may be strings. `engine="ray"` (or `"ray://HOST:PORT"`) scores by Ray's
    workers.
    """
    identity = ModelIdentity(name, revision, kind, logit_scale)
    if studies is not None and not isinstance(studies, str | Study | Sequence):
        options, studies = {"dataset": studies, **options}, None
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
    for name in (each for each in audited[1:] if isinstance(each, str)):
        way_to_open(name, options.load)  # an unknown one is told before the first is opened
    todo = {name: [each for each in inquiries if models or name in each.study.asks.reference_models] for name in names}
    digests = [each if isinstance(each, str) else each.spec.digest for each in audited]
    run.record.digest = run_digest(run, digests, inquiries, options)
    run.places, run.asked = Places(options.data, options.store, options.settings, asked=True), (asked, options)
    with run_folder(run.record, options.out, folder_name(names, run.record.studies)) as (run.folder, earlier):
        before, started = run.record.seconds, time.monotonic()
        later = sum(len(each.dataset) for mine in todo.values() for each in mine) * (1 + options.perturb)
        for model, name in zip(audited, names, strict=True):
            with _opened(model, options) as scorer:
                if model is audited[0]:
                    refuse_unused([scorer, *audited[1:]], options.load)
                options = replace(options, store=_store_for(scorer, run))
                confirm_upload(scorer, inquiries, options)
                refused = list[NotAskable]()
                for inquiry in todo[name]:
                    try:
                        for change, each in {"": inquiry, **inquiry.changed(options.perturb)}.items():
                            later -= len(each.dataset)
                            run.add(_audited(scorer, each, options, run, later), change)
                    except NotAskable as error:
                        refused.append(error)
                        if len(refused) == len(todo[name]):
                            raise
                        run.record.left_out.append(f"{inquiry.study.title}, {inquiry.dataset.name}: {error}")
                        continue
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
        add_not_compared(inquiry, results, options, run.record)
        report_rounding(scorer, inquiry, matrices, options, run)
        return results


# While a model is trained: Trainer(…, callbacks=[beholder.callback(every=1000, study="apa", data="data")])


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
    if find_spec("accelerate") is None:
        raise MissingExtra("The Trainer of transformers needs accelerate, and an audit by it", "large")
    kind = type("Audits", (Audits, TrainerCallback), {})
    return kind(every, processor, out, store, {"studies": study, **options})
