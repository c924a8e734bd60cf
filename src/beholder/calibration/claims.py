"""Claims: what a study says in one world, and whether that is true there.

A claim has the name of a metric or of a finding (`study.kind`). It is called when the verdict of one of its rows, or of
the finding, is "difference found". Rows are measured by the study's own code and made into findings by its chapter.
Of many worlds it is reported how often a claim is called, how often its intervals hold, and whether promises are kept.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

import beholder
from beholder.comparison.family import ALPHA, DIFFERENCE, NONE_FOUND
from beholder.core.errors import DataError, UnknownName
from beholder.core.files import write_whole
from beholder.core.progress import Progress, silent
from beholder.core.read import read_json, read_parquet
from beholder.core.results import WITHIN, Row, results_table, row_key
from beholder.scores.executor import Processes
from beholder.studies import STUDIES
from beholder.studies.study import MeasureOptions, Study
from beholder.studies.worlds import DESIGNS, GENDER_ONLY, SKEWED, SMALLEST, UNFAIR, WORLDS, Design, Trial, draw

DRAWS, SHUFFLES, FEW = 100, 299, 39
STATISTIC = "statistic"  # the unit of numbers that grow with the number of people, such as t: they have no true value
LARGE = 6000  # people of the one large draw that gives true values
TrueValues = Mapping[tuple[str | None, ...], float]  # values of rows by what tells them apart, where there is an effect


class Cell(NamedTuple):
    """A study in one world, with people of one design."""

    study: str
    design: str
    world: str

    @property
    def people(self) -> Design:
        return Design(10, 10) if self.design == SMALLEST else DESIGNS[self.design]

    @property
    def trials(self) -> Trial:
        trials: Trial = STUDIES[self.study].part("trials")
        return trials


class Said(NamedTuple):
    """What a study says of one claim in one world; of many worlds, in how many of them it does."""

    null: int = 0  # judged where nothing is there
    alarm: int = 0  # called where nothing is there
    true: int = 0  # judged where something is there
    found: int = 0  # called where something is there
    interval: int = 0  # there are intervals whose true value is known
    missed: int = 0  # one of them does not hold it
    tests: int = 0  # there are p-values without a verdict: those that the paper prints
    small: int = 0  # one of them is at most 0.05


Claims = dict[str, Said]


def measured(cell: Cell, rng: np.random.Generator) -> list[Row]:
    """The rows of one world."""
    world = draw(cell.world, cell.people, cell.trials.prompts, rng)
    seed = int(rng.integers(2**31))
    return list(cell.trials.measure(world, MeasureOptions(draws=DRAWS, shuffles=SHUFFLES, seed=seed)))


@cache
def true_values(cell: Cell) -> TrueValues:
    """What the rows' values would be with very many people, where there is an effect: one large draw."""
    if cell.world != GENDER_ONLY:
        return {}
    people, rng = cell.people, np.random.default_rng(0)
    times = LARGE // (people.women + people.men)
    many = people._replace(women=times * people.women, men=times * people.men)
    world = draw(cell.world, many, cell.trials.prompts, rng)
    rows = cell.trials.measure(world, MeasureOptions(draws=FEW, permutations=FEW, shuffles=FEW))
    known = (row for row in rows if row.value is not None and math.isfinite(row.value) and row.unit != STATISTIC)
    return {row_key(row): float(row.value or 0.0) for row in known}


def claims(cell: Cell, rows: Sequence[Row], truth: TrueValues) -> Claims:
    """What the rows of one world, and the findings made of them, say of every claim."""
    study, trials = STUDIES[cell.study], cell.trials
    said = dict.fromkeys(trials.found, Said()) if cell.world == UNFAIR else Claims()
    for name, one in (*_verdicts(study, trials, cell.world, rows), *_intervals(study, trials, cell, rows, truth)):
        said[name] = Said(*map(max, said.get(name, Said()), one))
    return said


def _verdicts(study: Study, trials: Trial, world: str, rows: Sequence[Row]) -> Iterator[tuple[str, Said]]:
    for row in rows:
        if row.verdict:
            yield row.metric, _judged(row.verdict, trials.may_say(row.metric, row.subset, world))
        elif row.p_value is not None and math.isfinite(row.p_value):
            yield row.metric, Said(tests=1, small=row.p_value <= ALPHA)
    chapter = study.part("chapter")
    if chapter:
        dataset = study.asks.datasets[0] if study.asks.datasets else "worlds"
        for finding in chapter.findings(results_table(rows, study=study.name, model="made", dataset=dataset)):
            name = f"{study.name}.{finding.kind}"
            subset = finding.rows[0]["subset"] if finding.rows else None
            yield name, _judged(finding.verdict, trials.may_say(name, subset, world))


def _judged(verdict: str, true: bool) -> Said:
    able, called = verdict in (DIFFERENCE, NONE_FOUND), verdict == DIFFERENCE
    return Said(true=able, found=called) if true else Said(null=able, alarm=called)


def _intervals(
    study: Study, trials: Trial, cell: Cell, rows: Sequence[Row], truth: TrueValues
) -> Iterator[tuple[str, Said]]:
    if cell.world == UNFAIR:
        return
    for row in _deciding(rows):
        metric = study.metric(row.metric)
        landmark = row.landmark if row.landmark is not None else metric.landmark if metric else None
        there = trials.may_say(row.metric, row.subset, cell.world)
        true = _true_value(row, truth, landmark) if there else landmark
        if true is not None and row.low is not None and row.high is not None and not math.isnan(row.low + row.high):
            yield row.metric, Said(interval=1, missed=not row.low <= true <= row.high)


def _deciding(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows with a verdict; of two that are alike, the one within strata."""
    judged = {row_key(row): row for row in rows if row.verdict}
    within = {place[:-1] for place in judged if (place[-1] or "").startswith(WITHIN)}
    for place, row in judged.items():
        if (place[-1] or "").startswith(WITHIN) or place[:-1] not in within:
            yield row


def _true_value(row: Row, truth: TrueValues, landmark: float | None) -> float | None:
    """By the row's place, or by that of the same pair of groups the other way round."""
    value = truth.get(row_key(row))
    if value is None:
        value = truth.get(row_key(row._replace(group=row.against, against=row.group)))
        if value:
            value = 1 / value if landmark == 1 else -value
    return value


BLOCK = 50
PARTS = ("studies", "chapter", "comparison", "metrics", "calibration")
PLACE = ("study", "design", "world", "claim")
SCHEMA = {**dict.fromkeys(PLACE, pl.String), **dict.fromkeys(Said._fields, pl.Int64)}


class Block(NamedTuple):
    """Some worlds of one cell, and the folder that keeps what is said in them."""

    cell: Cell
    seed: int
    start: int
    stop: int
    folder: Path

    @property
    def path(self) -> Path:
        """Where its counts lie: the name stands for everything that they depend on."""
        name = json.dumps([_code(), *self[:-1]]).encode()
        return self.folder / "blocks" / f"{hashlib.sha256(name).hexdigest()[:24]}.json"

    def kept(self) -> dict[str, dict[str, int]] | None:
        """What is said in it; None where it was not drawn yet, or its file is damaged and it is drawn again."""
        with suppress(DataError):
            return dict(read_json(self.path))
        return None


@cache
def _code() -> str:
    """A digest of the program: blocks of another version are not taken for ours."""
    root, digest = Path(beholder.__file__).parent, hashlib.sha256()
    for path in sorted(each for part in PARTS for each in (root / part).rglob("*") if each.suffix in (".py", ".csv")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def blocks_of(cells: Sequence[Cell], worlds: int, seed: int, folder: Path) -> list[Block]:
    """All cells cut into blocks, the first blocks of all cells first."""
    starts = range(0, worlds, BLOCK)
    return [Block(cell, seed, start, min(start + BLOCK, worlds), folder) for start in starts for cell in cells]


def simulate(block: Block) -> Claims:
    """For each claim, in how many worlds of a block what is said of it."""
    cell, counts = block.cell, Claims()
    for number in range(block.start, block.stop):
        rng = np.random.default_rng([block.seed, *"".join(cell).encode(), number])
        for name, said in claims(cell, measured(cell, rng), true_values(cell)).items():
            counts[name] = Said(*(int(a + b) for a, b in zip(counts.get(name, Said()), said, strict=True)))
    return counts


def _work(block: Block) -> int:
    counts = {name: said._asdict() for name, said in simulate(block).items()}
    write_whole(block.path, json.dumps(counts).encode())
    return block.stop - block.start


def repeat(
    cells: Sequence[Cell],
    folder: Path,
    *,
    worlds: int,
    seed: int,
    workers: int,
    advance: Callable[[int], None] = lambda count: None,
) -> pl.DataFrame:
    """In how many of so many worlds of every cell what is said; blocks that lie in the folder are not drawn again."""
    blocks = blocks_of(cells, worlds, seed, folder)
    missing = [block for block in blocks if block.kept() is None]
    advance(sum(block.stop - block.start for block in set(blocks) - set(missing)))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS") if workers > 1 else ():
        os.environ.setdefault(name, "1")  # before the workers load numpy and polars: processes, not threads
    with Processes(workers, does="draws worlds") if workers > 1 else nullcontext() as pool:
        for drawn in pool.map(_work, missing) if pool else map(_work, missing):
            advance(drawn)
    kept = ((block.cell._asdict(), (block.kept() or {}).items()) for block in blocks)
    table = pl.DataFrame([{**cell, "claim": claim, **said} for cell, found in kept for claim, said in found], SCHEMA)
    return table.group_by(PLACE, maintain_order=True).sum().with_columns(worlds=pl.lit(worlds))


ALARMS, COVERAGE, WIDE = 0.06, 0.93, 0.98  # most false alarms, fewest intervals that hold; above the last: too wide
SKEWED_ALARMS = 0.08  # skewed scores together with unequal spread and fewer than ten people: what is promised then
ROUNDING = 1e-9
TOO_MANY, TOO_NARROW, WIDER, OVERLOOKED = ("false alarms", "intervals too narrow", "intervals wide", "overlooked")
SHARES = dict.fromkeys(("alarms", "power", "coverage"), pl.Float64)
COLUMNS = {**SCHEMA, "worlds": pl.Int64, **SHARES, "expected": pl.Boolean, "verdict": pl.String}


def tried_studies() -> dict[str, Trial]:
    """The studies that declare how they are tried."""
    parts = {name: study.part("trials") for name, study in STUDIES.items()}
    return {name: part for name, part in parts.items() if isinstance(part, Trial)}


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
    return pl.col("verdict").str.contains(fault, literal=True)


def doubtful_cells(table: pl.DataFrame) -> list[Cell]:
    """The cells that are drawn again, with more worlds: those that do not keep a promise."""
    broken = table.filter(has(TOO_MANY) | has(TOO_NARROW))
    return [Cell(*place) for place in broken.select(PLACE[:3]).unique(maintain_order=True).iter_rows()]


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
    wide, hold = table.filter(has(WIDER)).height, "All intervals of a claim hold the truth in at least 93 % of worlds"
    more = f"; in {wide:,} they hold in more than 98 %: they are wider than they need to be" if wide else ""
    return [
        _promise(table, TOO_MANY, "alarms", "A claim is called in at most 6 % of worlds in which it is not true", also),
        _promise(table, TOO_NARROW, "coverage", hold, more),
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

    def drawn(cells: Sequence[Cell], worlds: int, label: str, turn: int = 0) -> pl.DataFrame:
        with options.progress(label, len(cells) * worlds, 0) as advance:
            seed, workers = options.seed + turn, options.workers
            return judged(repeat(cells, folder, worlds=worlds, seed=seed, workers=workers, advance=advance))

    few = min(UNFAIR_WORLDS, options.worlds)
    unfair = drawn([cell for cell in cells if cell.world == UNFAIR], few, "A wholly unfair model")
    others = drawn([cell for cell in cells if cell.world != UNFAIR], options.worlds, "All worlds")
    table = pl.concat([unfair, others])
    later = drawn(doubtful_cells(table) if options.again else [], options.again, "Cells in doubt, again", turn=1)
    return pl.concat([table.join(later, on=PLACE[:3], how="anti"), later])
