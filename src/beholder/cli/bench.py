"""`beholder bench`: how fast this machine does the work, every way of doing it timed in one run."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import typer
from rich.table import Table

from beholder.cli.console import err, out, say_json
from beholder.cli.help import Command
from beholder.core.errors import UsageError

app = typer.Typer(help="Compare the speed of several methods on this machine.", no_args_is_help=True)


SPEED = Path(__file__).parents[3] / "speed"
"""The timings are no part of the installed package: they lie beside its sources in a clone."""


def _module(name: str) -> ModuleType:
    if not SPEED.is_dir():
        raise UsageError(
            "beholder bench needs a clone of the project, since the timings are not installed.\n"
            "Install from the clone with: pip install -e ."
        )
    if str(SPEED) not in sys.path:
        sys.path.insert(0, str(SPEED))
    return import_module(name)


@app.callback()
def _bench() -> None:
    """Keeps `generative` a command of its own while it is the only one."""


@app.command("generative", cls=Command)
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
    as_json: bool = typer.Option(False, "--json", help="Print the timings as JSON."),
) -> None:
    """Time 500 questions about a picture: the authors' loop, batches, copied prefixes, our method, and the
    theoretical minimum.

    Weights are random: speed depends on shapes, not on what was learnt. The table also shows how far each method's
    answers differ from the loop's.
    """
    # Imported here so that other commands start without it.
    from beholder.models.checkpoint.checkpoint import resolve_device, torch

    known, rehearsal = _module("architectures"), _module("rehearsal")
    effort = rehearsal.Effort(pictures=pictures, loop=loop, repeats=repeats, together=at_once)
    device, timings = resolve_device(device), {}
    for built in [known.architecture(name) for name in architectures or known.ARCHITECTURES]:
        model = built.build(tiny=not full, device=device, dtype=torch.bfloat16 if full else torch.float32)
        lines = []
        for line in rehearsal.rehearse(
            built, model, rehearsal.Shape(), effort, tell=lambda text: err.print(f"  {text}")
        ):
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
