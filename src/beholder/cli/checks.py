"""Checks of Beholder itself: `beholder calibrate` and `bench`."""

import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import typer
from rich.table import Table

from beholder.calibration.claims import CalibrationOptions, calibrate, chosen_cells, promises, read_calibration
from beholder.cli.console import bar, err, note, out, say, say_json
from beholder.cli.options import writable
from beholder.core.errors import UsageError
from beholder.core.progress import silent
from beholder.report.replication import write_calibration, write_into

SPEED = Path(__file__).parents[3] / "speed"  # not installed: the timings lie beside the sources in a clone


def calibrate_command(
    study: list[str] = typer.Option(None, "--study", "-s", help="A study (repeatable). Default: all."),
    design: list[str] = typer.Option(None, "--design", help="How many people, such as '5 + 40' (repeatable)."),
    world: list[str] = typer.Option(None, "--world", help="What the model sees, such as 'noise' (repeatable)."),
    worlds: int = typer.Option(400, min=1, help="Worlds drawn for each study, design and world."),
    again: int = typer.Option(4000, min=0, help="Worlds of cells that do not keep a promise at first. 0: none."),
    seed: int = typer.Option(20260801, help="Equal seeds give equal numbers, on any number of processes."),
    workers: int = typer.Option(None, "--workers", min=1, help="Number of processes. Default: one per core."),
    output: Path = typer.Option(
        Path("beholder-calibration"), "--out", "-o", help="Folder for the page, the table and finished blocks."
    ),
    made: list[Path] = typer.Option(
        None, "--from", help="Draw nothing: make the page from a calibration.parquet, or several (later ones count)."
    ),
    into: Path = typer.Option(None, "--into", help="Also put the tables into this Markdown page."),
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """You can stop it with Ctrl-C at any time. The same command continues where it stopped."""
    writable(output, "--out")
    if made:
        table = read_calibration(made)
    else:
        progress = silent if quiet else partial(bar, unit="worlds")
        options = CalibrationOptions(worlds, again, seed, workers or os.cpu_count() or 1, progress)
        table = calibrate(chosen_cells(study or (), design or (), world or ()), output, options)
    page = write_calibration(table, output)
    if into:
        write_into(into, table)
    if as_json:
        say_json({"cells": table.to_dicts(), "promises": [promise._asdict() for promise in promises(table)]})
    elif not quiet:
        for promise in promises(table):
            say(f"{promise.headline}: {promise.sentence}")
            for each in promise.broken:
                say(f"  not kept: {each}")
    if not quiet:
        note(f"Page: {page.resolve()}")


def _module(name: str) -> ModuleType:
    if not SPEED.is_dir():
        raise UsageError(
            "beholder bench needs a clone of the project, since the timings are not installed.\n"
            "Install from the clone with: pip install -e ."
        )
    if str(SPEED) not in sys.path:
        sys.path.insert(0, str(SPEED))
    return import_module(name)


def generative_command(
    architectures: list[str] = typer.Argument(
        None, help="qwen2.5-vl-3b, llava-1.5-7b, gemma-3-4b, paligemma2-3b; default: all."
    ),
    device: str = typer.Option("auto", help="auto, cpu, cuda, cuda:1."),
    full: bool = typer.Option(False, "--full", help="True sizes in bfloat16, for a GPU; else tiny models in float32."),
    pictures: int = typer.Option(8, min=1, help="Pictures per timing of our method."),
    loop: int = typer.Option(8, min=2, help="Questions asked in each timing of the authors' loop."),
    repeats: int = typer.Option(2, min=1, help="Timings taken of each way."),
    at_once: int = typer.Option(
        None, min=1, help="Pictures that our method processes at once. Default: as many as fit in memory."
    ),
    as_json: bool = False,
) -> None:
    """Weights are random: speed depends on shapes, not on what was learnt. The table also shows how far each method's
    answers differ from the loop's.
    """
    # It needs torch, which is an extra.
    from beholder.models.torch_scorer import resolve_device, torch

    known, rehearsal = _module("architectures"), _module("rehearsal")
    effort = rehearsal.Effort(pictures=pictures, loop=loop, repeats=repeats, together=at_once)
    device, timings = resolve_device(device), {}
    for built in [known.architecture(name) for name in architectures or known.ARCHITECTURES]:
        model = built.build(tiny=not full, device=device, dtype=torch.bfloat16 if full else torch.float32)
        lines, shape = [], rehearsal.Shape()
        for line in rehearsal.rehearse(built, model, shape, effort, tell=lambda text: err.print(f"  {text}")):
            err.print(f"{built.name}: {line.way}: {line.per_second:,.1f} questions/s")
            lines.append(line)
        timings[built.name] = lines
        del model
    if as_json:
        say_json({name: [line._asdict() for line in lines] for name, lines in timings.items()})
        return
    size = "true size, bfloat16" if full else "tiny, float32"
    for name, lines in timings.items():
        table = Table("Way", "Questions/s", "To the loop", "Largest |Δ log p|", title=f"{name}, {size}, {device}")
        for line in lines:
            far = "" if line.difference is None else f"{line.difference:.1g}"
            table.add_row(line.way, f"{line.per_second:,.1f}", f"{line.per_second / lines[0].per_second:,.1f} ×", far)
        out.print(table)
