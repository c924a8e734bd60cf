"""Checks of Beholder itself: `beholder calibrate` and `bench`."""

import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

from rich.table import Table

from beholder.calibration.claims import CalibrationOptions, calibrate, chosen_cells, promises, read_calibration
from beholder.cli.console import bar, err, note, out, say, say_json
from beholder.cli.options import writable
from beholder.core.errors import UsageError
from beholder.core.progress import silent
from beholder.report.replication import write_calibration, write_into

SPEED = Path(__file__).parents[3] / "speed"  # not installed: the timings lie beside the sources in a clone


def calibrate_command(
    study: list[str] | None = None,
    design: list[str] | None = None,
    world: list[str] | None = None,
    worlds: int = 400,
    again: int = 4000,
    seed: int = 20260801,
    workers: int | None = None,
    output: Path = Path("beholder-calibration"),
    made: list[Path] | None = None,
    into: Path | None = None,
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
    architectures: list[str] | None = None,
    device: str = "auto",
    full: bool = False,
    pictures: int = 8,
    loop: int = 8,
    repeats: int = 2,
    at_once: int | None = None,
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
