"""Where words go: results to standard output, everything said along the way to standard error."""

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import typer
from rich import box, progress
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from beholder.core.progress import Advance

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
SIZES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
AT_ONCE = 2.0
WIDE = 120  # columns from which on a bar is drawn, and its speed beside the time left
BETWEEN_LINES = 30.0  # seconds: shorter work leaves no bar behind; a log gets a line as often as this


class Pace(progress.ProgressColumn):
    """Speed and time left."""

    def __init__(self, unit: str, later: int) -> None:
        super().__init__()
        self._unit, self._later = unit, later

    def render(self, task: progress.Task) -> Text:
        speed = task.finished_speed or task.speed
        text = pace(speed, task.remaining or 0, self._later, self._unit) if speed else ""
        return Text(text.partition(", ")[2] if self._later and err.width < WIDE else text, style="cyan")


def pace(speed: float, left: float, later: int, unit: str) -> str:
    """How fast it goes, how long this takes, and how long all that comes later in the run takes at this speed."""
    rate = f"{speed:.1f} {unit}/s" if speed >= 1 else f"{1 / speed:.1f} s/{unit.removesuffix('s')}"
    run = f", about {duration((left + later) / speed)} for the run" if later else ""
    return f"{rate}, {duration(left / speed)} left{run}"


def bar(label: str, total: int, done: int, later: int = 0, unit: str = "images") -> AbstractContextManager[Advance]:
    """Progress with speed and time left: a bar for a person (a spinner if the total is 0), now and then a log line."""
    return (_bar if err.is_terminal else _lines)(label, total, done, later, unit)


@contextmanager
def _bar(label: str, total: int, done: int, later: int, unit: str) -> Iterator[Advance]:
    """A bar, or a spinner if the length is unknown; what was over at once leaves no line behind."""
    text = progress.TextColumn("{task.description}", markup=False)
    wide = [progress.BarColumn(bar_width=20)] if err.width >= WIDE else []
    columns = (text, *wide, progress.MofNCompleteColumn(), Pace(unit, later))
    unknown = (progress.SpinnerColumn(), text, progress.TimeElapsedColumn())
    beside = 15 if not total else 45 if not later else 75 if err.width >= WIDE else 52  # columns of what else is shown
    began, room = time.monotonic(), max(12, err.width - beside)
    with progress.Progress(*(columns if total else unknown), console=err, transient=not total) as shown:
        task = shown.add_task(shortened(label, room), total=total or None, completed=done)

        def advance(count: int, note: str = "") -> None:
            shown.update(task, advance=count, description=shortened(f"{label}, {note}", room) if note else None)

        yield advance
        shown.live.transient = not total or time.monotonic() - began < AT_ONCE


@contextmanager
def _lines(label: str, total: int, done: int, later: int, unit: str) -> Iterator[Advance]:
    """A line every half minute, so that a log tells that the work goes on; short work says nothing."""
    began = reported = time.monotonic()
    start = done

    def advance(count: int, note: str = "") -> None:
        nonlocal done, reported
        done += count
        if (now := time.monotonic()) - reported >= BETWEEN_LINES:
            reported, speed = now, (done - start) / (now - began)
            left = pace(speed, total - done, later, unit) if speed else "none yet"
            parts = (f"{label}: {done:,} of {total:,} {unit}", left, *([note] if note else []))
            err.print(", ".join(parts), markup=False, soft_wrap=True)

    yield advance


def duration(seconds: float) -> str:
    """How long, in the unit that a person would say."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.2g} min"
    return f"{seconds / 3600:.2g} h" if seconds < 100 * 3600 else f"{seconds / 3600:,.0f} h"


def size(count: float) -> str:
    """A number of bytes."""
    unit = max((unit for unit in SIZES if count >= SIZES[unit]), key=SIZES.__getitem__, default="B")
    return f"{count:.0f} B" if unit == "B" else f"{count / SIZES[unit]:,.1f} {unit}"


def shortened(label: str, room: int) -> str:
    """A label that fits: the model's own name, which comes first, stays."""
    label = label if len(label) <= room else re.sub(r"^\S*/", "", label)
    return label if len(label) <= room else f"{label[: room - 1]}…"


def upload_question(*, yes: bool) -> Callable[[str], bool]:
    """What is done before pictures leave this machine: it is announced, and a person is asked unless `yes`."""

    def allowed(announced: str) -> bool:
        if yes:
            err.print(announced, markup=False, soft_wrap=True)
        return yes or (sys.stdin.isatty() and typer.confirm(f"{announced} Send them?", err=True))

    return allowed


def say(text: str) -> None:
    """A line of the result, as it is: nothing in it is markup, and it can be copied whole."""
    out.print(text, markup=False, soft_wrap=True)


def note(text: str) -> None:
    """A line said along the way."""
    err.print(text, markup=False, soft_wrap=True)


def say_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def set_verbosity(*, quiet: bool, verbose: bool) -> None:
    """Quiet: only errors. Verbose: what the parts say of themselves."""
    level = logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING
    handler = RichHandler(console=err, show_path=False)
    logging.basicConfig(level=level, format="%(message)s", handlers=[handler], force=True)


# Tables

ENDLESS = 10_000  # columns that no row needs


def show(rows: Sequence[dict[str, object]], as_json: bool) -> None:
    """Rows for people, never cut: a table, or paragraphs where the terminal is too narrow; as JSON, for programs."""
    if as_json:
        say_json(list(rows))
        return
    table = Table(*[_column(key, rows) for key in rows[0]] if rows else [], box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*[escape(_text(value)) for value in row.values()])
    needed = Measurement.get(out, out.options.update(width=ENDLESS), table)
    if not out.is_terminal:
        Console(width=max(out.width, needed.maximum), highlight=False).print(table)
    elif needed.minimum <= out.width:
        out.print(table)
    else:
        for row in rows:  # its first value, then the others under their names
            first, *others = ((key, _text(value)) for key, value in row.items() if value is not None)
            lines = [Text.assemble((f"{key}: ", "dim"), value) for key, value in others]
            out.print(Text(first[1], style="bold"), *(Padding(line, (0, 0, 0, 2)) for line in lines), sep="\n")


def _column(key: str, rows: Sequence[dict[str, object]]) -> Column:
    """Names are there to be copied: they are never broken. Numbers end where numbers end."""
    widest = max(len(str(row[key])) for row in rows)
    if key == "name":
        return Column(key, no_wrap=True, min_width=widest)
    counts = all(isinstance(row[key], int) or row[key] is None for row in rows)
    return Column(key, overflow="fold", justify="right" if counts else "left")


def _text(value: object) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
