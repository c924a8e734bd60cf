"""The straight line: data set × prompts → scores → measures → results → page.

run = beholder.audit("openai/clip-vit-base-patch32", STUDY, data="data")
run = audit_models(["openai/clip-vit-base-patch32"], [STUDY], AuditOptions(out=Path("run"), store=Path("store")))
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from beholder._options import AuditOptions
from beholder._run import Run, folder_name, refuse_other_weights, run_folder
from beholder._steps import (
    confirm_upload,
    filled,
    measure,
    new_run,
    opened,
    report_rounding,
    run_digest,
    store_for,
    written,
)
from beholder.core.errors import NotAskable, UsageError
from beholder.core.progress import followed_by
from beholder.models.load import Kind, Model, ModelIdentity, as_scorer, decoding_on_gpu, refuse_unused, way_to_open
from beholder.models.scorer import Scorer
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
            with opened(model, options) as scorer:
                if model is audited[0]:
                    refuse_unused([scorer, *audited[1:]], options.load)
                options = replace(options, store=store_for(scorer, run))
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


def _audited(scorer: Scorer, inquiry: Inquiry, options: AuditOptions, run: Run, later: int) -> pl.DataFrame:
    """One model with one study: fill what the store lacks, then measure; so many images come later in the run."""
    options = replace(options, progress=followed_by(options.progress, later))
    matrices = filled(scorer, inquiry, options, run)
    with options.progress(f"{scorer.spec.name}: measuring {inquiry.study.name}", 0, 0):
        results = measure(inquiry, matrices, options.measure, model=scorer.spec.name)
        add_not_compared(inquiry, results, options, run.record)
        report_rounding(scorer, inquiry, matrices, options, run)
        return results
