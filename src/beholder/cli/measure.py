"""`beholder measure`: the measures of a study on scores made elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from beholder.cli import options as common
from beholder.cli.console import bar, set_verbosity, show_run
from beholder.studies.sheets import chosen_studies


def measure_command(
    study: Annotated[str, typer.Argument(help=f"One of {common.NAMES}; or custom, with --prompts.")],
    scores: Annotated[
        list[str],
        typer.Option(
            "--scores",
            metavar="[NAME=]PATH",
            help="Parquet or CSV, wide (image_id, one column per prompt_id) or long (image_id, prompt_id, score); the "
            "studies' arrays (logits_<branch>.npy, identity_logits_<branch>.npy); or detections: COCO results (.json), "
            "a folder of class maps or probability maps. Repeatable; NAME= names the model that made them, so that "
            "several models share one page.",
        ),
    ],
    data: common.Data = None,
    dataset: common.DatasetName = None,
    settings: common.DatasetSettings = None,
    bins: common.Bins = None,
    output: common.RunOut = None,
    model: Annotated[str, typer.Option("--model", help="Name of the model that made the unnamed scores.")] = "imported",
    compat: common.Compat = False,
    draws: common.Draws = 2000,
    seed: common.Seed = 20260801,
    delta: common.Delta = None,
    person: common.Person = None,
    within: common.Within = None,
    as_json: common.AsJson = False,
    quiet: common.Quiet = False,
    *,
    own: Mapping[str, object],
) -> None:
    """Measure scores from files. A subset of images or prompts is enough; the output lists what is missing."""
    # Imported here so that other commands start without it.
    from beholder._audit import AuditOptions
    from beholder._measure import measure_scores
    from beholder.core.progress import silent
    from beholder.datasets.bins import parse_bins
    from beholder.datasets.settings import parse_settings
    from beholder.scores.fill import FillOptions
    from beholder.studies.study import MeasureOptions

    set_verbosity(quiet=quiet, verbose=False)
    (chosen,) = chosen_studies([study], own, data=data, dataset=dataset)
    options = AuditOptions(
        data,
        dataset,
        parse_settings(settings or ()),
        bins=parse_bins(bins or ()),
        out=common.writable(output, "--out"),
        fill=FillOptions(progress=silent if quiet else bar),
        measure=MeasureOptions(compat, draws, seed=seed, delta=delta, person=person, within=tuple(within or ())),
        own=own,
        command=sys.argv[1:],
    )
    run = measure_scores(chosen, scores_by_model(scores, model), options)
    show_run(run, as_json=as_json, quiet=quiet)


def scores_by_model(scores: Sequence[str], unnamed: str) -> dict[str, list[Path]]:
    """The files of each model; `NAME=PATH` names one, and a path that exists as it stands has no name.

    >>> scores_by_model(["Detic=boxes.json", "maps"], "LSeg")
    {'Detic': [PosixPath('boxes.json')], 'LSeg': [PosixPath('maps')]}
    """
    files: dict[str, list[Path]] = {}
    for text in scores:
        name, sign, path = text.partition("=")
        named = bool(sign and name and path) and not Path(text).exists()
        files.setdefault(name if named else unnamed, []).append(Path(path if named else text))
    return files
