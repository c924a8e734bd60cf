"""Claims: what a study says in one world, and whether that is true there.

A claim has the name of a metric or of a finding (`study.kind`). It is called when the verdict of one of its rows, or of
the finding, is "difference found". Rows are measured by the study's own code and made into findings by its chapter.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

import beholder
from beholder.comparison.family import ALPHA, DIFFERENCE, NONE_FOUND
from beholder.core.errors import DataError
from beholder.core.files import write_whole
from beholder.core.read import read_json
from beholder.core.results import KEY, WITHIN, Row, results_table
from beholder.scores.executor import Processes
from beholder.studies import STUDIES
from beholder.studies.study import MeasureOptions, Study
from beholder.studies.worlds import DESIGNS, GENDER_ONLY, SMALLEST, UNFAIR, Design, Trials, draw

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
        """How many people there are."""
        return Design(10, 10) if self.design == SMALLEST else DESIGNS[self.design]

    @property
    def trials(self) -> Trials:
        """How its study is tried."""
        trials: Trials = STUDIES[self.study].part("trials")
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
    many = people.times(LARGE // (people.women + people.men))
    world = draw(cell.world, many, cell.trials.prompts, rng)
    rows = cell.trials.measure(world, MeasureOptions(draws=FEW, permutations=FEW, shuffles=FEW))
    known = (row for row in rows if row.value is not None and math.isfinite(row.value) and row.unit != STATISTIC)
    return {_place(row): float(row.value or 0.0) for row in known}


def claims(cell: Cell, rows: Sequence[Row], truth: TrueValues) -> Claims:
    """What the rows of one world, and the findings made of them, say of every claim."""
    study, trials = STUDIES[cell.study], cell.trials
    said = dict.fromkeys(trials.found, Said()) if cell.world == UNFAIR else Claims()
    for name, one in (*_verdicts(study, trials, cell.world, rows), *_intervals(study, trials, cell, rows, truth)):
        said[name] = Said(*map(max, said.get(name, Said()), one))
    return said


def _verdicts(study: Study, trials: Trials, world: str, rows: Sequence[Row]) -> Iterator[tuple[str, Said]]:
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
    judged, called = verdict in (DIFFERENCE, NONE_FOUND), verdict == DIFFERENCE
    return Said(true=judged, found=called) if true else Said(null=judged, alarm=called)


def _intervals(
    study: Study, trials: Trials, cell: Cell, rows: Sequence[Row], truth: TrueValues
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
    judged = {_place(row): row for row in rows if row.verdict}
    within = {place[:-1] for place in judged if (place[-1] or "").startswith(WITHIN)}
    for place, row in judged.items():
        if (place[-1] or "").startswith(WITHIN) or place[:-1] not in within:
            yield row


def _place(row: Row) -> tuple[str | None, ...]:
    return tuple(getattr(row, name) for name in KEY)


def _true_value(row: Row, truth: TrueValues, landmark: float | None) -> float | None:
    """By the row's place, or by that of the same pair of groups the other way round."""
    value = truth.get(_place(row))
    if value is None:
        value = truth.get(_place(row._replace(group=row.against, against=row.group)))
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


def _kept(block: Block) -> dict[str, dict[str, int]] | None:
    """What is said in a block; None where it was not drawn yet, or its file is damaged and it is drawn again."""
    try:
        return dict(read_json(block.path))
    except DataError:
        return None


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
    missing = [block for block in blocks if _kept(block) is None]
    advance(sum(block.stop - block.start for block in set(blocks) - set(missing)))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS") if workers > 1 else ():
        os.environ.setdefault(name, "1")  # before the workers load numpy and polars: processes, not threads
    with Processes(workers, does="draws worlds") if workers > 1 else nullcontext() as pool:
        for drawn in pool.map(_work, missing) if pool else map(_work, missing):
            advance(drawn)
    kept = ((block.cell._asdict(), (_kept(block) or {}).items()) for block in blocks)
    table = pl.DataFrame([{**cell, "claim": claim, **said} for cell, found in kept for claim, said in found], SCHEMA)
    return table.group_by(PLACE, maintain_order=True).sum().with_columns(worlds=pl.lit(worlds))
