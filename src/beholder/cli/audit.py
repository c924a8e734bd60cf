"""`beholder audit`: from a model's name to a page, in one command."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beholder.cli import options as common
from beholder.cli.config import FILE, Config, write_config
from beholder.cli.console import bar, err, set_verbosity, show_run, upload_question
from beholder.cli.options import MODEL, WHERE
from beholder.cli.study_options import built, study_options
from beholder.core.errors import UsageError
from beholder.studies.sheets import Own, chosen_studies

if TYPE_CHECKING:
    from beholder._audit import AuditOptions
    from beholder.studies.study import Study


def audit_command(
    context: typer.Context,
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            help="A hub id, a local folder, onnx:DIR or a name from `beholder list models`. Default: the "
            "reference models.",
        ),
    ] = None,
    config: Config = None,
    study: common.Studies = None,
    data: common.Data = None,
    dataset: common.DatasetName = None,
    settings: common.DatasetSettings = None,
    bins: common.Bins = None,
    limit: common.Limit = None,
    skip_bad_images: common.SkipBadImages = False,
    output: common.RunOut = None,
    store: common.StoreFolder = None,
    verify: Annotated[
        bool,
        common.flag(
            "--verify",
            "Check the store: read every image file again, and score one stored image of each block again.",
            WHERE,
        ),
    ] = False,
    log: common.Log = None,
    as_json: common.AsJson = False,
    quiet: common.Quiet = False,
    verbose: Annotated[
        bool, common.flag("--verbose", "Print every sentence and the tables, and more messages.", WHERE, "-v")
    ] = False,
    device: common.Device = "auto",
    precision: common.Precision = "auto",
    decode: common.Decode = "exact",
    engine: common.Engine = "local",
    workers: common.RayWorkers = None,
    gpus_per_worker: common.GpusPerWorker = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Images at a time. If memory runs out, smaller batches are tried.", rich_help_panel=MODEL
        ),
    ] = None,
    one_by_one: Annotated[
        bool,
        common.flag(
            "--one-by-one", "Ask a generative model each question separately. Slower, with the same answers.", MODEL
        ),
    ] = False,
    trust_remote_code: Annotated[
        bool,
        common.flag(
            "--trust-remote-code", "Let a hub model run its own code. Use it only if you trust the author.", MODEL
        ),
    ] = False,
    allow_pickle: Annotated[
        bool,
        common.flag(
            "--allow-pickle",
            "Load weights from pickle files, which can run code. Use it only if you trust them.",
            MODEL,
        ),
    ] = False,
    yes: common.Yes = False,
    compat: common.Compat = False,
    draws: common.Draws = 2000,
    seed: common.Seed = 20260801,
    delta: common.Delta = None,
    person: common.Person = None,
    within: common.Within = None,
    perturb: Annotated[
        int,
        typer.Option(
            "--perturb",
            min=0,
            max=8,
            help="Measure again after this many small changes of every picture (JPEG quality, a pixel of crop, "
            "resizing), and show how far each finding moves.",
            rich_help_panel=common.NUMBERS,
        ),
    ] = 0,
    *,
    own: Mapping[str, object],
) -> None:
    """Audit models: compute missing scores, measure, and write a report.

    You can stop it with Ctrl-C at any time. The same command continues where it stopped.
    """
    # Imported here so that other commands start without it.
    from beholder._audit import audit_models
    from beholder._plan import uncompared
    from beholder.report.trackers import log_run, require_tracker

    set_verbosity(quiet=quiet, verbose=verbose)
    for tracker in log or ():
        require_tracker(tracker)
    studies, options = asked_of(context.params, own)
    run = audit_models(models or [], studies, options)
    write_config(context, run.folder or Path())
    show_run(run, as_json=as_json, quiet=quiet, verbose=verbose)
    for tracker in log or ():
        err.print(
            log_run(run.report, tracker, name=(run.folder or Path()).resolve().name), markup=False, soft_wrap=True
        )
    if reasons := list(uncompared(run.results, studies, options)):
        err.print("\n".join(reasons), markup=False, soft_wrap=True)
        raise typer.Exit(1)


def asked_of(params: Mapping[str, Any], own: Own) -> tuple[list[Study], AuditOptions]:
    """The studies and the options that parameters of this command mean; one that is not there has its default."""
    # Imported here so that other commands start without it.
    from beholder._audit import AuditOptions
    from beholder.core.progress import silent
    from beholder.datasets.bins import parse_bins
    from beholder.datasets.settings import parse_settings
    from beholder.models.load import LoadOptions
    from beholder.scores.fill import FillOptions
    from beholder.scores.ray_pool import ray_options
    from beholder.studies.study import MeasureOptions

    def chosen(*names: str) -> dict[str, Any]:
        return {name: params[name] for name in names if name in params}

    data, dataset = params.get("data"), params.get("dataset")
    models = params.get("models") or ()
    studies = chosen_studies(params.get("study") or [], own, data=data, dataset=dataset, models=models)
    load = chosen("device", "precision", "decode", "batch_size", "trust_remote_code", "allow_pickle")
    progress = silent if params.get("quiet") else bar
    ray = ray_options(params.get("engine", "local"), params.get("workers"), params.get("gpus_per_worker"))
    return studies, AuditOptions(
        data,
        dataset,
        parse_settings(params.get("settings") or ()),
        params.get("limit"),
        bins=parse_bins(params.get("bins") or ()),
        out=common.writable(params.get("output"), "--out"),
        store=common.writable(common.store_folder(params.get("store")), "--store"),
        load=LoadOptions(**load, shared_prefix=not params.get("one_by_one")),
        fill=FillOptions(**chosen("skip_bad_images", "verify"), progress=progress, ray=ray),
        measure=MeasureOptions(
            **chosen("compat", "draws", "seed", "delta", "person"), within=tuple(params.get("within") or ())
        ),
        perturb=params.get("perturb", 0),
        own=own,
        allow_upload=upload_question(yes=params.get("yes", False)),
        command=sys.argv[1:],
    )


def recorded_params(folder: Path) -> dict[str, Any]:
    """The parameters of this command with which a run was made."""
    if not (folder / FILE).is_file():
        raise UsageError(f"{folder} has no {FILE}. Only runs of `beholder audit` have one.")
    command = built("audit", audit_command, study_options())
    with command.make_context("audit", ["--config", str(folder / FILE)]) as context:
        return {**context.params, "output": None, "config": None}


def own_options(params: Mapping[str, Any]) -> dict[str, object]:
    """The studies' own options among the parameters of a command."""
    known = {option.name: params.get(option.name) for option in study_options()}
    listed = {name: list(value) if isinstance(value, tuple) else value for name, value in known.items()}
    return {name: value for name, value in listed.items() if value not in (None, [], False)}
