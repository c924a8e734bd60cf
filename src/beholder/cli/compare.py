"""`beholder compare`: what one model says otherwise than another, with the uncertainty of the difference."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from beholder.cli.audit import LIMIT, store_folder
from beholder.cli.choice import SETTINGS_HELP, OwnWords, chosen_benchmarks
from beholder.cli.console import bar, err, out, say_json, set_verbosity
from beholder.cli.group import writable


def compare_command(
    first: str = typer.Argument(..., metavar="FIRST", help="The model that is compared with: a name as for audit."),
    second: str = typer.Argument(
        ..., metavar="SECOND", help="The model that is compared. Differences are its less the first's."
    ),
    benchmark: list[str] = typer.Option(
        None,
        "--benchmark",
        "-b",
        help="apa, pfi, gras, perception, disparity (repeatable). Default: apa, with --data also pfi.",
    ),
    data: Path = typer.Option(
        None, "--data", envvar="BEHOLDER_DATA", help="Folder that holds the data sets. Without it: the embedded world."
    ),
    dataset: str = typer.Option(None, help="Another data set: a name, or folder:PATH for own images."),
    settings: list[str] = typer.Option(None, "--set", help=SETTINGS_HELP),
    limit: int = typer.Option(None, min=1, help=LIMIT),
    skip_bad_images: bool = typer.Option(False, "--skip-bad-images", help="Go on without images that cannot be read."),
    output: Path = typer.Option(Path("beholder-comparison"), "--out", "-o", help="Folder for the page and the tables."),
    store: Path = typer.Option(
        None, envvar="BEHOLDER_STORE", help="Where scores are kept and found again. Default: ~/.cache/beholder."
    ),
    device: str = typer.Option("auto", help="auto, cpu, cuda, cuda:1, mps."),
    precision: str = typer.Option("auto", help="auto, float32, bfloat16, float16."),
    seed: int = typer.Option(20260801, help="Seed of who is left out when."),
    as_json: bool = typer.Option(False, "--json", help="Print the differences as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no summary."),
) -> None:
    """What the second model says otherwise than the first, asked the same about the same people.

    Models that were audited before are not asked again: their scores are in the store. Both are measured again
    without a twentieth of the people, twenty times, the same people for both; the interval is that of the difference.
    """
    from beholder.audit import AuditOptions
    from beholder.compare import Pair, compare_models
    from beholder.core.progress import silent
    from beholder.datasets.settings import parse_settings
    from beholder.models.load import LoadOptions
    from beholder.report.comparison import print_comparison, write_comparison
    from beholder.scores.fill import FillOptions
    from beholder.studies.study import MeasureOptions

    set_verbosity(quiet=quiet, verbose=False)
    options = AuditOptions(
        out=writable(output, "--out"),
        store=writable(store_folder(store), "--store"),
        data=data,
        dataset=dataset,
        settings=parse_settings(settings or ()),
        limit=limit,
        load=LoadOptions(device=device, precision=precision),
        fill=FillOptions(skip_bad_images=skip_bad_images, progress=silent if quiet else bar),
        measure=MeasureOptions(seed=seed),
        command=sys.argv[1:],
    )
    chosen = chosen_benchmarks(benchmark or [], OwnWords(), data=data, dataset=dataset, models=(first, second))
    found = compare_models(Pair(first, second), chosen, options)
    page = write_comparison(found, output)
    if as_json:
        say_json({"differences": found.table.to_dicts(), "left_out": found.record.left_out})
    elif not quiet:
        print_comparison(found, out)
    if not quiet:
        err.print(f"Report: {page.resolve()}", markup=False, soft_wrap=True)
