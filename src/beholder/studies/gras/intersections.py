"""Intersections of gender, race and age: whom positive traits favour, and what single attributes do not explain.

A cell may stand out only because its gender and its race do. So each is compared with the mean of all, and with what
its attributes add up to (a least-squares fit without interactions). Tests shuffle the residuals of that fit (Freedman
and Lane) and take the cell that lies farthest off, so that they hold for all cells together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.metrics.group_gaps import critical_value, rank_p_values
from beholder.metrics.multiplicity import shuffles_for
from beholder.metrics.pooling import Pooled, partial_pooling
from beholder.studies.gras.groups import NOTHING, Answers, Array, people_of

CROSSED = ("gender", "race", "age")
"""Attributes whose intersections are measured."""
CELLS = 1 << 21
"""Residuals held at once."""


class Departures(NamedTuple):
    """How far cells lie from a fit: their distance with bounds for all of them, p-values, and one for any at all."""

    value: Array
    low: Array
    high: Array
    p_value: Array
    at_most: npt.NDArray[np.bool_]
    spread: float
    """Standard deviation of the true departures; 0: no more than chance."""
    together: float
    """p-value of "the fit does not hold", over all cells."""
    together_at_most: bool


class Intersections(NamedTuple):
    """Cells of several attributes at once, with how much each is favoured."""

    names: list[str]
    size: npt.NDArray[np.int_]
    raw: Array
    pooled: Pooled
    """Small cells borrow from all."""
    from_mean: Departures
    beyond: Departures | None
    """Beyond what the single attributes add up to; None where nothing is left over."""
    additive: Array
    """What the single attributes add up to."""


def intersections(answers: Answers, rng: np.random.Generator) -> Intersections | None:
    """Gender × race × age (those that are known): positive minus negative traits."""
    known = [name for name in CROSSED if name in answers.images.columns and answers.images[name].drop_nulls().len()]
    if len(known) < 2:
        return None
    labelled = answers.images.select(pl.all_horizontal(pl.col(known).is_not_null())).to_series().to_numpy()
    columns = {"favour": pl.Series(answers.asked(labelled).favour()), "who": pl.Series(people_of(answers.images))}
    table = answers.images.select(known).with_columns(**columns).filter(pl.col("favour").is_not_nan()).drop_nulls()
    # Images of one person in one cell are one observation.
    units = table.group_by([*known, "who"], maintain_order=True).agg(pl.col("favour").mean(), images=pl.len())
    cells = units.group_by(known).agg(pl.len(), pl.col("images").sum()).filter(pl.col("len") > 1).sort(known)
    if cells.height < 4:
        return None
    units = units.join(cells.select(known).with_row_index("cell"), on=known, maintain_order="left")
    values, cell = units["favour"].to_numpy(), units["cell"].to_numpy().astype(int)
    size = np.bincount(cell, minlength=cells.height).astype(np.float64)
    raw = np.bincount(cell, weights=values) / size
    within = float(((values - raw[cell]) ** 2).sum() / max(len(values) - len(size), 1))
    if len(values) <= len(size) or within < NOTHING**2:  # all answers are equal, or nothing tells the spread
        return None
    names = [" × ".join(map(str, row)) for row in cells.select(known).iter_rows()]
    design = _additive(cells.select(known))
    beyond = None
    fitted = _projection(design, size) @ raw
    if np.linalg.matrix_rank(design) < len(size):
        beyond = departures(values, cell, design, rng)
    return Intersections(
        names,
        cells["images"].to_numpy(),
        raw,
        partial_pooling(raw, np.sqrt(within / size)),
        departures(values, cell, np.ones((len(size), 1)), rng),
        beyond,
        fitted,
    )


def _additive(cells: pl.DataFrame) -> Array:
    """A level for every value of every attribute, `[n_cells, n_levels]`, and one for all."""
    columns = [np.ones((cells.height, 1))]
    for name in cells.columns:
        labels = cells[name].cast(pl.String).to_numpy()
        columns.append((labels[:, None] == np.unique(labels)[None, 1:]).astype(np.float64))
    return np.concatenate(columns, axis=1)


def _projection(design: Array, size: Array) -> Array:
    """The matrix that turns cells' means into their fit, weighted by the cells' sizes."""
    weighted = design * size[:, None]
    return np.asarray(design @ np.linalg.pinv(design.T @ weighted) @ weighted.T)


def departures(values: Array, cell: npt.NDArray[np.int_], design: Array, rng: np.random.Generator) -> Departures:
    """How far the means of cells lie from a fit to them; `design[n_cells, n_levels]`."""
    fit = _Fit(values, cell, design)
    off, error, deviates, ratio = (part[0] for part in fit.departures(fit.residual[None]))
    shuffles, farthest, ratios = shuffles_for(1), [], []
    step = max(1, CELLS // len(values))
    for start in range(0, shuffles, step):
        shuffled = np.tile(fit.residual, (min(step, shuffles - start), 1))
        _, _, far, together = fit.departures(rng.permuted(shuffled, axis=1))
        farthest.append(far.max(axis=1))
        ratios.append(together)
    chance = np.sort(np.concatenate(farthest))
    p_value, at_most = rank_p_values(deviates, chance)
    p_together, bound = rank_p_values(np.atleast_1d(ratio), np.sort(np.concatenate(ratios)))
    margin = critical_value(chance) * error
    spread = fit.spread(off)
    return Departures(off, off - margin, off + margin, p_value, at_most, spread, float(p_together[0]), bool(bound[0]))


class _Fit:
    """A fit to the means of cells, and how far residuals put them from it."""

    def __init__(self, values: Array, cell: npt.NDArray[np.int_], design: Array) -> None:
        self._size = np.bincount(cell).astype(np.float64)
        self._hat = _projection(design, self._size)
        self._rank = len(self._size) - int(np.linalg.matrix_rank(design))
        means = np.bincount(cell, weights=values) / self._size
        self.residual = values - (self._hat @ means)[cell]
        self._squares, self._free = float((self.residual**2).sum()), len(values) - len(self._size)
        self._within = float(((values - means[cell]) ** 2).sum()) / self._free
        self._belongs = (cell[:, None] == np.arange(len(self._size))) / self._size
        self._scale = np.sqrt(np.maximum((1 - np.diag(self._hat)) / self._size, 0.0))

    def departures(self, residuals: Array) -> tuple[Array, Array, Array, Array]:
        """Of every row of residuals: the cells' departures, their errors, both as deviates, and all cells' together."""
        means = residuals @ self._belongs
        off = means - means @ self._hat.T
        within = np.maximum(self._squares - (self._size * means**2).sum(axis=1), 0.0) / self._free
        error = np.sqrt(within)[:, None] * self._scale
        with np.errstate(divide="ignore", invalid="ignore"):
            deviates = np.where(self._scale > 1e-9, np.abs(off) / error, 0.0)
            return off, error, np.nan_to_num(deviates), (self._size * off**2).sum(axis=1) / within

    def spread(self, off: Array) -> float:
        """Standard deviation of the cells' true departures: what is left after chance is taken off."""
        beyond_chance = float((self._size * off**2).sum()) - self._rank * self._within
        return float(np.sqrt(max(0.0, beyond_chance) / self._size.sum()))
