"""Options that several commands share, each declared once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from beholder.core.errors import UsageError
from beholder.core.files import Place, place
from beholder.core.files import store_folder as store_folder
from beholder.core.remote import RemotePath
from beholder.studies import AUDITED

FolderOrNone = TypeVar("FolderOrNone", Place, Path | None)
WHAT, WHERE, MODEL, NUMBERS = "What to audit", "Output", "Model", "Statistics"
NAMES = ", ".join(AUDITED)

LATEST = Path("runs/latest")


def flag(name: str, text: str, panel: str, *short: str) -> Any:
    """An option that is given or not."""
    return typer.Option(name, *short, help=text, rich_help_panel=panel)


def run_or_latest(folder: Path) -> Path:
    """A run folder; where none was named, the run that ended last."""
    if folder == LATEST and not folder.exists():
        raise UsageError("There is no run in runs/latest. Make one with `beholder audit`, or name a run folder.")
    return folder


Studies = Annotated[
    list[str] | None,
    typer.Option(
        "--study",
        "-s",
        help=f"One of {NAMES} (repeatable). Default: the studies that fit the data. `beholder list "
        f"studies` describes them.",
        rich_help_panel=WHAT,
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="BEHOLDER_DATA",
        help="Folder of the data sets. Default: the embedded world.",
        rich_help_panel=WHAT,
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="Use another data set: a name, or folder:PATH, hf:NAME or wds:URI for your own images.",
        rich_help_panel=WHAT,
    ),
]
DatasetSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Change how the data set is read, NAME=VALUE (repeatable). `beholder data settings NAME` "
        "lists the settings.",
        rich_help_panel=WHAT,
    ),
]
Bins = Annotated[
    list[str] | None,
    typer.Option(
        "--bins",
        help="Make groups of a column of numbers, NAME=EDGE,EDGE,… (repeatable): age=0,18,30,50,70. "
        "Own prompts put other numbers of more than 12 values into five bins of equal counts.",
        rich_help_panel=WHAT,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Use at most this many images per branch, race or gender (whichever the study compares), "
        "spread evenly over the groups.",
        rich_help_panel=WHAT,
    ),
]
SkipBadImages = Annotated[
    bool, flag("--skip-bad-images", "Skip unreadable images; the report counts and lists them.", WHAT)
]
RunOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Run folder for results and report. Default: a new folder in runs/, or that of the same run if it was "
        "stopped.",
        rich_help_panel=WHERE,
    ),
]
RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", callback=run_or_latest, help="A run folder. Default: runs/latest.")
]
StoreFolder = Annotated[
    Path | None,
    typer.Option(
        "--store",
        parser=place,
        metavar="PATH",
        envvar="BEHOLDER_STORE",
        help="Folder or URI (s3://bucket/scores) in which scores are stored and reused. Default: ~/.cache/beholder.",
        rich_help_panel=WHERE,
    ),
]
Log = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        metavar="TRACKER",
        help="Log the headline numbers to wandb, mlflow or tensorboard too (repeatable).",
        rich_help_panel=WHERE,
    ),
]
AsJson = Annotated[bool, flag("--json", "Print the results as JSON.", WHERE)]
Quiet = Annotated[bool, flag("--quiet", "No progress, no summary.", WHERE, "-q")]
Device = Annotated[
    str, typer.Option(help="auto, cpu, cuda, cuda:1, mps; several: cuda:0,cuda:1 or cuda:all.", rich_help_panel=MODEL)
]
Precision = Annotated[
    str, typer.Option(help="auto, float32, bfloat16, float16. Part of the model's spec.", rich_help_panel=MODEL)
]
Decode = Annotated[
    str,
    typer.Option(
        help="exact, or gpu: decode JPEG files on an NVIDIA card. Faster; pixels differ a little, so it is part of the "
        "model's spec. both: exact, and show how far gpu moves each finding.",
        rich_help_panel=MODEL,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="local, ray (the cluster of RAY_ADDRESS or of this machine; else one is started) or ray://HOST:PORT.",
        rich_help_panel=MODEL,
    ),
]
RayWorkers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="Ray workers, each with its own copy of the model. Default: one per card, or one per 4 cores if there are "
        "no cards.",
        rich_help_panel=MODEL,
    ),
]
GpusPerWorker = Annotated[
    float | None,
    typer.Option(
        "--gpus-per-worker",
        min=0,
        help="Cards of each Ray worker: 0.5 lets two share one. Default: 1 if the cluster has cards.",
        rich_help_panel=MODEL,
    ),
]
Yes = Annotated[
    bool,
    flag("--yes", "Do not ask before pictures are sent to the server of a served model (openai:MODEL@URL).", MODEL),
]
Compat = Annotated[
    bool,
    flag("--compat", "Compute as the authors' released scripts do, with their rounding and dropped rows.", NUMBERS),
]
Draws = Annotated[int, typer.Option(min=100, help="Bootstrap draws behind every interval.", rich_help_panel=NUMBERS)]
Seed = Annotated[int, typer.Option(help="Seed of the bootstrap.", rich_help_panel=NUMBERS)]
Delta = Annotated[
    float | None,
    typer.Option(
        min=1e-6,
        help="The largest bias that counts as none. 0.01 means one point of probability, or a factor of "
        "1.01 for a ratio. Adds an equivalence test.",
        rich_help_panel=NUMBERS,
    ),
]

Person = Annotated[
    str | None,
    typer.Option(
        "--person",
        help="The column that says who is shown, so that each person counts once. Default: person, name, identity, "
        "seed or subject, whichever comes first; without any of them every picture counts as someone else.",
        rich_help_panel=NUMBERS,
    ),
]
Within = Annotated[
    list[str] | None,
    typer.Option(
        "--within",
        help="With --prompts: compare groups within the values of this column (repeatable), so that what it explains "
        "is not held against them.",
        rich_help_panel=NUMBERS,
    ),
]


def writable(folder: FolderOrNone, option: str) -> FolderOrNone:
    """The folder, if something can be written there; checked before the work, and without making it.

    A store that can only be read passes: it may hold all that is needed.
    """
    if folder is None or isinstance(folder, RemotePath):
        return folder
    try:
        there = next(place for place in (folder, *folder.resolve().parents) if place.exists())
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name that is too long
        reason = getattr(error, "strerror", None) or "the name leads in a circle or cannot be used"
        raise UsageError(f"{option} {folder}: {reason}. Name another folder.") from error
    if not there.is_dir():
        raise UsageError(f"{option} {folder}: {there} is a file, not a folder. Name another one.")
    if not os.access(there, os.W_OK | os.X_OK) and not (option == "--store" and there == folder):
        raise UsageError(f"{option} {folder}: {there} is not writable. Name another folder.")
    return folder
