"""The whole calibration: every cell, those in doubt again with more worlds, and the table of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from beholder.calibration.claims import Cell
from beholder.calibration.repeat import repeat
from beholder.calibration.summary import doubtful_cells, judged, replaced
from beholder.core.progress import Progress, silent
from beholder.studies.worlds import UNFAIR

UNFAIR_WORLDS = 20
"""Worlds of a wholly unfair model, which differ little."""


@dataclass(frozen=True)
class CalibrationOptions:
    """How many worlds, and who draws them."""

    worlds: int = 400
    again: int = 4000
    """Worlds of a cell that does not keep its promise in the first ones; 0: it is not drawn again."""
    seed: int = 20260801
    workers: int = 1
    progress: Progress = silent


def calibrate(cells: Sequence[Cell], folder: Path, options: CalibrationOptions) -> pl.DataFrame:
    """What is said in how many worlds of every cell, with verdicts."""
    unfair = [cell for cell in cells if cell.world == UNFAIR]
    others = [cell for cell in cells if cell.world != UNFAIR]
    few = min(UNFAIR_WORLDS, options.worlds)
    table = pl.concat(
        [
            _drawn(unfair, few, "A wholly unfair model", folder, options),
            _drawn(others, options.worlds, "All worlds", folder, options),
        ]
    )
    doubtful = doubtful_cells(table) if options.again else []
    return replaced(table, _drawn(doubtful, options.again, "Cells in doubt, again", folder, options, turn=1))


def _drawn(
    cells: Sequence[Cell], worlds: int, label: str, folder: Path, options: CalibrationOptions, turn: int = 0
) -> pl.DataFrame:
    with options.progress(label, len(cells) * worlds, 0) as advance:
        seed, workers = options.seed + turn, options.workers
        return judged(repeat(cells, folder, worlds=worlds, seed=seed, workers=workers, advance=advance))
