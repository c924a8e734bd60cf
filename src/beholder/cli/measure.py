"""`beholder measure`: the measures of a benchmark on scores made elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from beholder.cli.audit import COMPAT
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


def measure_command(
    benchmark: str = typer.Argument(..., help="apa, gras, disparity …; `beholder list benchmarks` names them all."),
    scores: list[Path] = typer.Option(
        ...,
        "--scores",
        help="Parquet or CSV, wide (image_id, one column per prompt_id) or long (image_id, prompt_id, score); "
        "the studies' arrays (logits_<branch>.npy, identity_logits_<branch>.npy); or detections: COCO results (.json), "
        "a folder of class maps. Repeatable.",
    ),
    data: Path = typer.Option(None, "--data", envvar="BEHOLDER_DATA", help="Folder that holds the data sets (apa/ …)."),
    dataset: str = typer.Option(None, help="Another data set for the benchmark, by name."),
    settings: list[str] = typer.Option(None, "--set", help=SETTINGS_HELP),
    output: Path = typer.Option(Path("beholder-run"), "--out", "-o", help="Run folder for results and report."),
    model: str = typer.Option("imported", "--model", help="What to call the model behind the scores."),
    traits: Path = typer.Option(None, help=TRAITS_HELP),
    templates: Path = typer.Option(None, help=TEMPLATES_HELP),
    dimensions: Path = typer.Option(None, help=DIMENSIONS_HELP),
    ratings: Path = typer.Option(None, help=RATINGS_HELP),
    by: str = typer.Option(None, help=BY_HELP),
    word_vectors: Path = typer.Option(None, help=WORD_VECTORS_HELP),
    calibration: str = typer.Option(None, help=CALIBRATION_HELP),
    beside: list[Path] = typer.Option(None, help=BESIDE_HELP),
    compat: bool = typer.Option(False, "--compat", help=COMPAT),
    draws: int = typer.Option(2000, min=100, help="Bootstrap draws behind every interval."),
    seed: int = typer.Option(20260801, help="Seed of the bootstrap."),
    delta: float = typer.Option(
        None,
        min=1e-6,
        help="The largest bias that counts as none: 0.01 is one point of probability, for a ratio a factor of 1.01. "
        "Adds the verdict of two one-sided tests.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the results as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No summary."),
) -> None:
    """Measure scores made elsewhere: a subset is measured as far as it goes, and the output says what was left out."""
    from beholder.audit import AuditOptions, measure_scores
    from beholder.core.progress import silent
    from beholder.datasets.settings import parse_settings
    from beholder.report.terminal import print_summary
    from beholder.scores.fill import FillOptions
    from beholder.studies.study import MeasureOptions

    set_verbosity(quiet=quiet, verbose=False)
    measure = MeasureOptions(compat=compat, draws=draws, seed=seed, delta=delta)
    options = AuditOptions(
        out=writable(output, "--out"),
        store=Path(),
        data=data,
        dataset=dataset,
        settings=parse_settings(settings or ()),
        fill=FillOptions(progress=silent if quiet else bar),
        measure=measure,
        beside=beside or (),
        command=sys.argv[1:],
    )
    own = OwnWords(None, (by,) if by else (), traits, templates, dimensions, ratings, word_vectors, calibration)
    (chosen,) = chosen_benchmarks([benchmark], own, data=data, dataset=dataset)
    run = measure_scores(chosen, scores, options, model=model)
    if as_json:
        say_json({"results": run.results.to_dicts(), "left_out": run.record.left_out})
    elif not quiet:
        print_summary(run, out)
    if not quiet:
        err.print(f"Report: {(output / 'report.html').resolve()}", markup=False, soft_wrap=True)
