"""`beholder audit`: from a model's name to a page, in one command."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path

import typer

from beholder.cli.choice import (
    BESIDE_HELP,
    BY_HELP,
    CALIBRATION_HELP,
    DIMENSIONS_HELP,
    RATINGS_HELP,
    SETTINGS_HELP,
    TEMPLATES_HELP,
    TRAITS_HELP,
    WORD_VECTORS_HELP,
    OwnWords,
    chosen_benchmarks,
)
from beholder.cli.console import bar, err, out, say_json, set_verbosity
from beholder.cli.group import writable

WHAT, WHERE, MODEL, NUMBERS = ("What is audited", "Where results go", "How the model runs", "How numbers are made")
LIMIT = (
    "At most so many images of each branch (APA, P-FI), race (GRAS, perception) or gender (disparity), spread evenly "
    "over the groups."
)
COMPAT = "Compute as the authors' released scripts do: float16 means, dropped rows."


class Engine(StrEnum):
    """Where the work is done; not shown while there is one answer."""

    local = "local"


def audit_command(
    models: list[str] = typer.Argument(
        None,
        metavar="MODEL",
        help="Hub id, local folder, onnx:DIR, a name of `beholder list models`. None: the embedded reference models.",
    ),
    benchmark: list[str] = typer.Option(
        None,
        "--benchmark",
        "-b",
        help="apa, pfi, gras, perception, disparity (repeatable). Default: apa, with --data also pfi; with neither "
        "model nor data apa, gras and disparity.",
        rich_help_panel=WHAT,
    ),
    data: Path = typer.Option(
        None,
        "--data",
        envvar="BEHOLDER_DATA",
        help="Folder that holds the data sets (apa/ …). Without it: the embedded world.",
        rich_help_panel=WHAT,
    ),
    dataset: str = typer.Option(
        None, help="Another data set: a name, or folder:PATH for own images.", rich_help_panel=WHAT
    ),
    settings: list[str] = typer.Option(None, "--set", help=SETTINGS_HELP, rich_help_panel=WHAT),
    prompts: Path = typer.Option(
        None, help="Own prompts (CSV or Parquet with a column 'text') instead of a benchmark.", rich_help_panel=WHAT
    ),
    by: list[str] = typer.Option(None, help=BY_HELP, rich_help_panel=WHAT),
    traits: Path = typer.Option(None, help=TRAITS_HELP, rich_help_panel=WHAT),
    templates: Path = typer.Option(None, help=TEMPLATES_HELP, rich_help_panel=WHAT),
    dimensions: Path = typer.Option(None, help=DIMENSIONS_HELP, rich_help_panel=WHAT),
    ratings: Path = typer.Option(None, help=RATINGS_HELP, rich_help_panel=WHAT),
    word_vectors: Path = typer.Option(None, help=WORD_VECTORS_HELP, rich_help_panel=WHAT),
    beside: list[Path] = typer.Option(None, help=BESIDE_HELP, rich_help_panel=WHAT),
    limit: int = typer.Option(None, min=1, help=LIMIT, rich_help_panel=WHAT),
    skip_bad_images: bool = typer.Option(
        False,
        "--skip-bad-images",
        help="Go on without images that cannot be read; they are counted and listed.",
        rich_help_panel=WHAT,
    ),
    output: Path = typer.Option(
        Path("beholder-run"), "--out", "-o", help="Run folder for results and report.", rich_help_panel=WHERE
    ),
    store: Path = typer.Option(
        None,
        envvar="BEHOLDER_STORE",
        help="Where scores are kept and found again. Default: ~/.cache/beholder.",
        rich_help_panel=WHERE,
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the results as JSON.", rich_help_panel=WHERE),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no summary.", rich_help_panel=WHERE),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Say more along the way.", rich_help_panel=WHERE),
    device: str = typer.Option("auto", help="auto, cpu, cuda, cuda:1, mps.", rich_help_panel=MODEL),
    precision: str = typer.Option(
        "auto", help="auto, float32, bfloat16, float16. Part of the model's spec.", rich_help_panel=MODEL
    ),
    batch_size: int = typer.Option(
        None, min=1, help="Images at a time; halved by itself when memory runs out.", rich_help_panel=MODEL
    ),
    one_by_one: bool = typer.Option(
        False,
        "--one-by-one",
        help="Ask a model that answers in words each question by itself, sharing nothing. Slow; the same answers.",
        rich_help_panel=MODEL,
    ),
    engine: Engine = typer.Option(Engine.local, help="Where the work is done.", hidden=True),
    trust_remote_code: bool = typer.Option(
        False,
        "--trust-remote-code",
        help="Let a hub model run its own code. Off unless you trust its author.",
        rich_help_panel=MODEL,
    ),
    allow_pickle: bool = typer.Option(
        False,
        "--allow-pickle",
        help="Load weights in pickle files, which can run code. Off unless you trust them.",
        rich_help_panel=MODEL,
    ),
    compat: bool = typer.Option(False, "--compat", help=COMPAT, rich_help_panel=NUMBERS),
    calibration: str = typer.Option(None, help=CALIBRATION_HELP, rich_help_panel=NUMBERS),
    draws: int = typer.Option(2000, min=100, help="Bootstrap draws behind every interval.", rich_help_panel=NUMBERS),
    seed: int = typer.Option(20260801, help="Seed of the bootstrap.", rich_help_panel=NUMBERS),
    delta: float = typer.Option(
        None,
        min=1e-6,
        help="The largest bias that counts as none: 0.01 is one point of probability, for a ratio a factor of 1.01. "
        "Adds the verdict of two one-sided tests.",
        rich_help_panel=NUMBERS,
    ),
) -> None:
    """Audit models: score what the store lacks, measure, and leave a report.

    Stop it at any time with Ctrl-C and start it again with the same command: it goes on where it stopped.
    """
    from beholder.audit import AuditOptions, audit_models
    from beholder.core.progress import silent
    from beholder.datasets.settings import parse_settings
    from beholder.models.load import LoadOptions
    from beholder.report.terminal import print_summary
    from beholder.scores.fill import FillOptions
    from beholder.studies.study import MeasureOptions

    set_verbosity(quiet=quiet, verbose=verbose)
    writable(output, "--out")
    own = OwnWords(prompts, by or (), traits, templates, dimensions, ratings, word_vectors, calibration)
    chosen = chosen_benchmarks(benchmark or [], own, data=data, dataset=dataset, models=models or ())
    options = AuditOptions(
        out=output,
        store=writable(store_folder(store), "--store"),
        data=data,
        dataset=dataset,
        limit=limit,
        settings=parse_settings(settings or ()),
        load=LoadOptions(
            device=device,
            precision=precision,
            batch_size=batch_size,
            trust_remote_code=trust_remote_code,
            allow_pickle=allow_pickle,
            shared_prefix=not one_by_one,
        ),
        fill=FillOptions(skip_bad_images=skip_bad_images, progress=silent if quiet else bar),
        measure=MeasureOptions(compat=compat, draws=draws, seed=seed, delta=delta),
        beside=beside or (),
        command=sys.argv[1:],
    )
    run = audit_models(models or [], chosen, options)
    if as_json:
        say_json(
            {"results": run.results.to_dicts(), "left_out": run.record.left_out, "bad_images": run.record.bad_images}
        )
    elif not quiet:
        print_summary(run, out)
    if not quiet:
        err.print(f"Report: {(output / 'report.html').resolve()}", markup=False, soft_wrap=True)


def store_folder(option: Path | None) -> Path:
    """Where scores are kept: the option, else the user's cache."""
    return option or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "beholder"
