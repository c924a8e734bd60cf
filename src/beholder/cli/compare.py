"""`beholder compare`: where two models differ, with the uncertainty of each difference."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from beholder.cli import options as common
from beholder.cli.console import bar, err, out, say_json, set_verbosity, upload_question
from beholder.studies.choice import chosen_studies


def compare_command(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="The baseline model, named as for `audit`.")],
    second: Annotated[
        str, typer.Argument(metavar="SECOND", help="The model to compare. Differences are second minus first.")
    ],
    benchmark: common.Benchmarks = None,
    data: common.Data = None,
    dataset: common.DatasetName = None,
    settings: common.DatasetSettings = None,
    limit: common.Limit = None,
    skip_bad_images: common.SkipBadImages = False,
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for the page and the tables.")] = Path(
        "beholder-comparison"
    ),
    store: common.StoreFolder = None,
    device: common.Device = "auto",
    precision: common.Precision = "auto",
    yes: common.Yes = False,
    seed: Annotated[int, typer.Option(help="Seed that decides who is left out.")] = 20260801,
    as_json: common.AsJson = False,
    quiet: common.Quiet = False,
) -> None:
    """Show where two models differ on the same questions and the same people.

    Scores of earlier audits are reused. Both models are measured again twenty times, each time without the same
    twentieth of the people. This gives the interval of each difference.
    """
    # Imported here so that other commands start without it.
    from beholder.audit import AuditOptions
    from beholder.compare import compare_models
    from beholder.core.progress import silent
    from beholder.datasets.settings import parse_settings
    from beholder.models.load import LoadOptions
    from beholder.report.comparison import Pair, print_comparison, write_comparison
    from beholder.scores.fill import FillOptions
    from beholder.studies.study import MeasureOptions

    set_verbosity(quiet=quiet, verbose=False)
    options = AuditOptions(
        data,
        dataset,
        parse_settings(settings or ()),
        limit,
        out=common.writable(output, "--out"),
        store=common.writable(common.store_folder(store), "--store"),
        load=LoadOptions(device=device, precision=precision),
        fill=FillOptions(skip_bad_images=skip_bad_images, progress=silent if quiet else bar),
        measure=MeasureOptions(seed=seed),
        allow_upload=upload_question(yes=yes),
        command=sys.argv[1:],
    )
    chosen = chosen_studies(benchmark or [], {}, data=data, dataset=dataset, models=(first, second))
    found = compare_models(Pair(first, second), chosen, options)
    page = write_comparison(found, output)
    if as_json:
        say_json({"differences": found.table.to_dicts(), "left_out": found.record.left_out})
    elif not quiet:
        print_comparison(found, out)
    if not quiet:
        err.print(f"Report: {page.resolve()}", markup=False, soft_wrap=True)
