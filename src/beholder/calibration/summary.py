"""What many worlds say of every claim: how often it is called, how often its intervals hold; and what is promised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder.calibration.claims import PLACE, SCHEMA, Cell, repeat
from beholder.core.errors import UnknownName
from beholder.core.progress import Progress, silent
from beholder.core.read import read_parquet
from beholder.studies import STUDIES
from beholder.studies.worlds import CONSTANTS, DESIGNS, HEAVY_TAILS, SMALLEST, TWO_LEVELS, UNFAIR, WORLDS, Trials

ALARMS, COVERAGE, WIDE = 0.06, 0.93, 0.98  # most false alarms, fewest intervals that hold; above the last: too wide
SKEWED, SKEWED_ALARMS = (CONSTANTS, HEAVY_TAILS, TWO_LEVELS), 0.08
"""Skewed scores together with unequal spread and fewer than ten people: what is promised then."""
ROUNDING = 1e-9
TOO_MANY, TOO_NARROW, WIDER, OVERLOOKED = ("false alarms", "intervals too narrow", "intervals wide", "overlooked")
COLUMNS = {
    **SCHEMA,
    "worlds": pl.Int64,
    **dict.fromkeys(("alarms", "power", "coverage"), pl.Float64),
    "expected": pl.Boolean,
    "verdict": pl.String,
}


def tried_studies() -> dict[str, Trials]:
    """The studies that declare how they are tried."""
    parts = {name: study.part("trials") for name, study in STUDIES.items()}
    return {name: part for name, part in parts.items() if isinstance(part, Trials)}


def chosen_cells(studies: Sequence[str] = (), designs: Sequence[str] = (), worlds: Sequence[str] = ()) -> list[Cell]:
    """Every study in every world with every design, or those that are named."""
    tried = tried_studies()
    all_designs = (SMALLEST, *DESIGNS)
    for kind, names, known in (("study", studies, tried), ("design", designs, all_designs), ("world", worlds, WORLDS)):
        for name in names:
            if name not in known:
                raise UnknownName(f"{kind} with trials", name, known)
    return [
        Cell(study, design, world)
        for study, trials in tried.items()
        for design in all_designs
        for world in WORLDS
        if design in trials.designs or (design == SMALLEST and world == UNFAIR)
        if study in (studies or tried) and design in (designs or all_designs) and world in (worlds or WORLDS)
    ]


def judged(counts: pl.DataFrame) -> pl.DataFrame:
    """The counts as shares of worlds, each with whether its promise is kept."""
    unequal = pl.col("design").is_in([name for name, design in DESIGNS.items() if design.spread != 1])
    extra = pl.when(unequal & pl.col("world").is_in(SKEWED)).then(SKEWED_ALARMS - ALARMS).otherwise(0.0)
    must = {(study, claim) for study, trials in tried_studies().items() for claim in trials.found}
    place = zip(counts["study"], counts["claim"], strict=True)
    expected = pl.Series([each in must for each in place], dtype=pl.Boolean) & (counts["world"] == UNFAIR)
    null, true, interval = (pl.col(name) > 0 for name in ("null", "true", "interval"))
    shares = counts.with_columns(
        alarms=pl.when(null).then(pl.col("alarm") / pl.col("worlds")),
        power=pl.when(true).then(pl.col("found") / pl.col("worlds")),
        coverage=pl.when(interval).then(1 - pl.col("missed") / pl.col("worlds")),
    )
    alarms, power, coverage = pl.col("alarms"), pl.col("power"), pl.col("coverage")
    faults = {
        OVERLOOKED: pl.lit(expected) & (power.fill_null(0.0) < 1),
        TOO_MANY: alarms > ALARMS + extra + ROUNDING,
        TOO_NARROW: coverage < COVERAGE - extra - ROUNDING,
        WIDER: coverage > WIDE,
    }
    named = [pl.when(broken).then(pl.lit(name)) for name, broken in faults.items()]
    return shares.with_columns(expected=expected, verdict=pl.concat_str(named, separator=", ", ignore_nulls=True))


def has(fault: str) -> pl.Expr:
    """Whether a verdict names this fault."""
    return pl.col("verdict").str.contains(fault, literal=True)


def doubtful_cells(table: pl.DataFrame) -> list[Cell]:
    """The cells that are drawn again, with more worlds: those that do not keep a promise."""
    broken = table.filter(has(TOO_MANY) | has(TOO_NARROW))
    return [Cell(*place) for place in broken.select(PLACE[:3]).unique(maintain_order=True).iter_rows()]


def replaced(table: pl.DataFrame, later: pl.DataFrame) -> pl.DataFrame:
    """The table with the cells of a later one in place of its own."""
    kept = table.join(later, on=PLACE[:3], how="anti")
    return pl.concat([kept, later])


def read_calibration(paths: Sequence[Path]) -> pl.DataFrame:
    """What earlier runs have written; where two have a study, the later file counts."""
    first, *others = (read_parquet(path / "calibration.parquet" if path.is_dir() else path, COLUMNS) for path in paths)
    for table in others:
        first = pl.concat([first.join(table, on="study", how="anti"), table])
    return first


class Promise(NamedTuple):
    """What is promised of all claims, and where it is not kept."""

    headline: str
    sentence: str
    broken: list[str]


def promises(table: pl.DataFrame) -> list[Promise]:
    """False alarms, intervals, and a model that is wholly unfair."""
    extra = table.filter(pl.col("alarms") > ALARMS + ROUNDING, ~has(TOO_MANY))
    also = f"; up to 8 % are allowed of {'; '.join(listed(extra, 'alarms'))}" if extra.height else ""
    wide = table.filter(has(WIDER)).height
    return [
        _promise(table, TOO_MANY, "alarms", "A claim is called in at most 6 % of worlds in which it is not true", also),
        _promise(
            table,
            TOO_NARROW,
            "coverage",
            "All intervals of a claim hold the truth in at least 93 % of worlds",
            f"; in {wide:,} they hold in more than 98 %: they are wider than they need to be" if wide else "",
        ),
        _promise(table.filter("expected"), OVERLOOKED, "power", "A model that is wholly unfair is always found", ""),
    ]


def _promise(table: pl.DataFrame, broken: str, share: str, headline: str, more: str) -> Promise:
    known = table.filter(pl.col(share).is_not_null() | has(broken))
    failed = known.filter(has(broken))
    sentence = f"{known.height - failed.height:,} of {known.height:,} cells do{more}."
    return Promise(headline, sentence, listed(failed, share))


def listed(table: pl.DataFrame, share: str) -> list[str]:
    """Cells in words."""
    return [
        f"{row['claim']} · {row['world']} · {row['design']}: {100 * (row[share] or 0):.1f} % of {row['worlds']:,}"
        for row in table.iter_rows(named=True)
    ]


# The whole calibration

UNFAIR_WORLDS = 20  # worlds of a wholly unfair model, which differ little


@dataclass(frozen=True)
class CalibrationOptions:
    """How many worlds, and who draws them."""

    worlds: int = 400
    again: int = 4000  # worlds of a cell that does not keep its promise in the first ones; 0: it is not drawn again
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
