"""`beholder export`: a run for a paper, a pull request, a model's card, a leaderboard or a tracker of experiments."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from beholder.cli import options as common
from beholder.cli.console import err


class Format(StrEnum):
    """What it is for."""

    markdown = "markdown"
    latex = "latex"
    card = "card"
    eval_results = "eval-results"
    scores = "scores"
    wandb = "wandb"
    mlflow = "mlflow"
    tensorboard = "tensorboard"


def export_command(
    folder: common.RunFolder = common.LATEST,
    to: Annotated[
        Format,
        typer.Option(
            help="markdown: findings and tables; latex: tables with booktabs; card: for a model's card, with its "
            "model-index; eval-results: YAML for the hub's .eval_results; scores: every score with its labels, as "
            "JSON lines; wandb, mlflow, tensorboard: log the numbers."
        ),
    ] = Format.markdown,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="A file to write. Default: standard output. A folder for card and eval-results of several models, and "
            "for the logs of wandb, mlflow and tensorboard.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="With card and eval-results: the model, if the run has several.")
    ] = None,
    source: Annotated[
        str, typer.Option(metavar="URL", help="With card and eval-results: where the run's page can be read.")
    ] = "",
    data: common.Data = None,
    store: common.StoreFolder = None,
) -> None:
    """Write a run's findings and numbers for other places: papers, model cards, leaderboards, experiment trackers.

    Charts as SVG and PNG: `beholder report RUN --figures FOLDER`. All numbers: results.csv in the run folder.
    """
    # Imported here so that other commands start without it.
    from beholder._run import load_run
    from beholder.core.files import write_whole
    from beholder.report.exports import FORMATS, PER_MODEL, Target, audited_models
    from beholder.report.report import slug
    from beholder.report.trackers import TRACKERS, log_run

    run = load_run(folder)
    report = run.report
    if to in TRACKERS:
        err.print(log_run(report, to, folder=file, name=folder.resolve().name), markup=False, soft_wrap=True)
        return
    several = audited_models(report) if to in PER_MODEL and model is None else []
    texts: dict[Path | None, str]
    if to == Format.scores:
        texts = {file: run.scores(model=model, data=data, store=store).write_ndjson()}
    elif file is not None and len(several) > 1:
        texts = {file / f"{slug(each)}.{PER_MODEL[to]}": FORMATS[to](report, Target(each, source)) for each in several}
    else:
        texts = {file: FORMATS[to](report, Target(model, source))}
    for path, text in texts.items():
        if path is None:
            sys.stdout.write(text)
        else:
            write_whole(path, text.encode("utf-8", "replace"))
            err.print(f"Written: {path.resolve()}", markup=False, soft_wrap=True)
