"""Trials of GRAS's intersections, in simulated worlds whose truth is known.

Partial pooling promises its coverage over all cells, not for one chosen cell. So each world draws the true values of
its cells from one distribution, and the outcome is the error of one cell, whose truth is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import ndtr

from beholder.glasshouse.oracle import Levels, Noise, Oracle
from beholder.studies.gras.groups import CROSSED, Answers
from beholder.studies.gras.measures import intersection_rows
from beholder.studies.trial import Experiment, Outcome, Trial, outcome

Array = npt.NDArray[np.float64]
NOISE = Noise(image=0.5, prompt=0.5, template=0.3, cell=0.7)
COUNTS = dict(zip(CROSSED, (2, 7, 5), strict=True))
"""Genders, races and age bands of the study: 70 cells."""
CELLS = 2 * 7 * 5
TRAITS, TEMPLATES, WORLD = 4, 5, 89
"""Two positive traits and two negative ones; seed of their levels, which stay as they are."""
SAFE = "where cells do not differ, all are pulled to their mean: the interval is too wide, which is safe"


def intersection_experiments() -> Iterator[Experiment]:
    """Cells that do not differ, that differ little and that differ much; of equal sizes and of unequal ones."""
    yield _intersections(24, 0.0, 0.5)
    yield _intersections(24, 0.02, 1.0)
    yield _intersections(51, 0.05, 1.0)
    yield _intersections(24, 0.02, 1.0, uneven=True)


def _intersections(n: int, spread: float, share: float, *, uneven: bool = False) -> Experiment:
    sizes = f"of {n // 4} to {7 * n // 4}" if uneven else f"of {n}"
    setting, images = f"{CELLS} cells {sizes}, differing by {100 * spread:g} points", n * CELLS
    # A cell borrows from all others, so the promise is that for all images together.
    trials = [Trial("gras.intersection", setting, images, 0.0, effect=spread, exception="" if spread else SAFE)]
    if not spread:
        trials.append(Trial("gras.intersection", setting, images, 0.0, family=True, kind="any cell"))
    simulate = partial(_draw, n, spread, uneven)
    return Experiment(f"intersections {setting}", tuple(trials), simulate, share)


@cache
def _world() -> tuple[Oracle, Levels, Array]:
    """The oracle, its levels, and the slope of a cell's favour over its shift where that is 0."""
    oracle = Oracle(base=-0.3, noise=NOISE)
    levels = oracle.levels(TRAITS, TEMPLATES, np.random.default_rng(WORLD))
    return oracle, levels, (favour(oracle, levels, 1e-3) - favour(oracle, levels, 0.0)) / 1e-3


def favour(oracle: Oracle, levels: Levels, shift: npt.ArrayLike) -> Array:
    """True favour of cells whose attributes move the positive traits (the first half) by `shift`."""
    positive, negative = levels.latent[: TRAITS // 2], levels.latent[TRAITS // 2 :]
    scale = np.sqrt(1 + oracle.noise.of_pictures**2)
    moved = np.asarray(shift, dtype=np.float64)[..., None, None]
    return np.asarray(
        ndtr((oracle.base + moved + positive) / scale).mean(axis=(-2, -1))
        - ndtr((oracle.base + negative) / scale).mean()
    )


def _draw(n: int, spread: float, uneven: bool, rng: np.random.Generator) -> Sequence[Outcome]:
    plain, levels, slope = _world()
    shifts = spread / float(slope) * rng.standard_normal(CELLS)
    cell = np.repeat(np.arange(CELLS), _sizes(n, uneven))
    oracle = Oracle(plain.base, {"cell": {str(i): float(shift) for i, shift in enumerate(shifts)}}, NOISE)
    touched = np.arange(TRAITS) < TRAITS // 2
    p_yes = oracle.probability({"cell": cell.astype(str)}, levels, rng, touched=touched)
    rows = {row.group: row for row in intersection_rows(_answers(cell, p_yes))}
    truth = favour(plain, levels, shifts)
    first = rows[_name(0)]
    off = float(truth[0] - truth.mean())
    result = outcome(first)
    moved = [result._replace(value=result.value - off, low=result.low - off, high=result.high - off)]
    any_called = any(each.low > 0 or each.high < 0 for each in map(outcome, rows.values()))
    return moved if spread else [*moved, Outcome(np.nan, p_value=0.0 if any_called else 1.0)]


def _sizes(n: int, uneven: bool) -> npt.NDArray[np.int_]:
    """Images of each cell: all alike, or a quarter to seven quarters of that by turns."""
    return n * (1 + 2 * (np.arange(CELLS) % 4)) // 4 if uneven else np.full(CELLS, n)


def _labels(cell: npt.NDArray[np.int_]) -> dict[str, npt.NDArray[np.int_]]:
    """Each cell's values of the crossed attributes."""
    return dict(zip(COUNTS, np.unravel_index(cell, tuple(COUNTS.values())), strict=True))


def _name(cell: int) -> str:
    return " × ".join(str(value) for value in np.unravel_index(cell, tuple(COUNTS.values())))


def _answers(cell: npt.NDArray[np.int_], p_yes: Array) -> Answers:
    images = pl.DataFrame({name: values.astype(str) for name, values in _labels(cell).items()})
    valences = ["positive"] * (TRAITS // 2) + ["negative"] * (TRAITS // 2)
    return Answers(images, [f"trait {i}" for i in range(TRAITS)], valences, [f"T{k}" for k in range(TEMPLATES)], p_yes)
