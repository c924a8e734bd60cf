"""The common form of a claim about speed: every way timed in one run, processor time beside the clock, and the ratio.

A script's functions take its options and give `Claim`s; `main` prints them, as tables or with `--json` as JSON. With
`--quick`, sizes are so small that they only show that the script runs. Ratios are those of processor time, which other
users of the machine change least.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

Cell = str | float | None


class Claim(NamedTuple):
    """What is claimed, and the table that shows it."""

    claim: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def text(self) -> str:
        """The claim, and its table as Markdown, padded to be read in a terminal too."""
        lines = [list(self.columns), *([_shown(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        table = [
            f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines
        ]
        return "\n".join([self.claim, "", *table])


class Way(NamedTuple):
    """One way of doing the work: seconds by the clock and of the processor, and megabytes at the peak."""

    name: str
    clock: float
    processor: float
    peak: float | None = None


def compared(claim: str, ways: Sequence[Way]) -> Claim:
    """Ways of doing the work, ours first; the ratio is the processor time in multiples of the first way's."""
    columns = ["way", "seconds", "processor seconds", "ratio"]
    rows: list[list[Cell]] = [
        [way.name, way.clock, way.processor, way.processor / ways[0].processor if number else 1]
        for number, way in enumerate(ways)
    ]
    if any(way.peak for way in ways):
        columns, rows = [*columns, "peak MB"], [[*row, way.peak] for row, way in zip(rows, ways, strict=True)]
    return Claim(claim, columns, rows)


def timed(name: str, work: Callable[[], object], *, repeats: int = 3, share: float = 1.0) -> Way:
    """The fastest of a few runs; `share` says how much of the whole work one run does."""
    runs = [spent(work) for _ in range(repeats)]
    return Way(name, min(run[0] for run in runs) / share, min(run[1] for run in runs) / share)


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock and of the processor, threads and ended processes included."""
    began, used = time.perf_counter(), processor_seconds()
    work()
    return time.perf_counter() - began, processor_seconds() - used


def processor_seconds() -> float:
    """Of this process and of those it has ended."""
    usages = (resource.getrusage(kind) for kind in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def alone(name: str, work: Callable[..., Callable[[], object]], *arguments: Any) -> Way:
    """The same once, in a process of its own, for its peak of memory; `work(*arguments)` prepares and is not timed."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_alone, name, work, arguments).result()


def _alone(name: str, work: Callable[..., Callable[[], object]], arguments: tuple[Any, ...]) -> Way:
    clock, processor = spent(work(*arguments))
    status = Path("/proc/self/status").read_text().split()
    return Way(name, clock, processor, int(status[status.index("VmHWM:") + 1]) / 1024)


def main(
    *functions: Callable[[argparse.Namespace], Iterable[Claim]], parser: argparse.ArgumentParser | None = None
) -> None:
    """Print the claims of a script; a parser may add options of its own."""
    parser = parser or argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest sizes, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    claims = []
    for claim in (claim for function in functions for claim in function(options)):
        claims.append(claim._asdict())
        if not options.json:
            print(claim.text(), end="\n\n", flush=True)
    if options.json:
        print(json.dumps(claims))


def _shown(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    return f"{cell:,.0f}" if cell >= 100 or cell == int(cell) else f"{cell:.3g}"
