"""`beholder audit`: from a model's name to a page, in one command."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from beholder.cli import options as common
from beholder.cli.config import Config, write_config
from beholder.cli.console import bar, set_verbosity, show_run, upload_question
from beholder.cli.options import MODEL, WHERE
from beholder.studies.choice import chosen_studies


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
    benchmark: common.Benchmarks = None,
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
        typer.Option(
            "--verify",
            help="Check the store: read every image file again, and score one stored image of each block again.",
            rich_help_panel=WHERE,
        ),
    ] = False,
    as_json: common.AsJson = False,
    quiet: common.Quiet = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Print every sentence and the tables, and more messages.", rich_help_panel=WHERE
        ),
    ] = False,
    device: common.Device = "auto",
    precision: common.Precision = "auto",
    decode: common.Decode = "exact",
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Images at a time. If memory runs out, smaller batches are tried.", rich_help_panel=MODEL
        ),
    ] = None,
    one_by_one: Annotated[
        bool,
        typer.Option(
            "--one-by-one",
            help="Ask a generative model each question separately. Slower, with the same answers.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    trust_remote_code: Annotated[
        bool,
        typer.Option(
            "--trust-remote-code",
            help="Let a hub model run its own code. Use it only if you trust the author.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle",
            help="Load weights from pickle files, which can run code. Use it only if you trust them.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    yes: common.Yes = False,
    compat: common.Compat = False,
    draws: common.Draws = 2000,
    seed: common.Seed = 20260801,
    delta: common.Delta = None,
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
    from beholder.audit import AuditOptions, audit_models
    from beholder.core.progress import silent
    from beholder.datasets.bins import parse_bins
    from beholder.datasets.settings import parse_settings
    from beholder.models.load import LoadOptions
    from beholder.scores.fill import FillOptions
    from beholder.studies.study import MeasureOptions

    set_verbosity(quiet=quiet, verbose=verbose)
    studies = chosen_studies(benchmark or [], own, data=data, dataset=dataset, models=models or ())
    options = AuditOptions(
        data,
        dataset,
        parse_settings(settings or ()),
        limit,
        bins=parse_bins(bins or ()),
        out=common.writable(output, "--out"),
        store=common.writable(common.store_folder(store), "--store"),
        load=LoadOptions(
            device=device,
            precision=precision,
            decode=decode,
            batch_size=batch_size,
            trust_remote_code=trust_remote_code,
            allow_pickle=allow_pickle,
            shared_prefix=not one_by_one,
        ),
        fill=FillOptions(skip_bad_images=skip_bad_images, verify=verify, progress=silent if quiet else bar),
        measure=MeasureOptions(compat=compat, draws=draws, seed=seed, delta=delta),
        perturb=perturb,
        own=own,
        allow_upload=upload_question(yes=yes),
        command=sys.argv[1:],
    )
    run = audit_models(models or [], studies, options)
    write_config(context, run.folder or Path())
    show_run(run, as_json=as_json, quiet=quiet, verbose=verbose)
