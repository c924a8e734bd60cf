"""Contrasts of groups, slopes and interactions for many columns at once, judged together.

Many prompts times many groups always hold a wide gap. So bounds and p-values come from the widest of all contrasts and
columns that shuffled people give (max-t), as in `group_gaps`. Pictures of one person count together. Pure functions:
arrays in, small named results out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.metrics.group_gaps import (
    CELLS,
    CellMeans,
    Pictures,
    critical_value,
    normal_scale,
    rank_p_values,
    student_scale,
)
from beholder.metrics.person_shuffles import PersonShuffles
from beholder.metrics.pooling import partial_pooling

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int_]
NOTHING = 1e-13
"""Differences below this are rounding errors."""


class Contrasts(NamedTuple):
    """Each contrast in each column, `[n_contrasts, n_columns]`; NaN where a column says nothing about it."""

    value: Array
    low: Array
    high: Array
    p_value: Array
    at_most: npt.NDArray[np.bool_]
    """Where the p-value is the smallest that the shuffles can give."""
    by_chance: Array
    """The mean distance of the highest from the lowest group after shuffling, `[n_columns]`; NaN for slopes."""


class _Estimates(NamedTuple):
    """Values, standard errors and degrees of freedom, `[n_shuffles, n_contrasts, n_columns]`."""

    value: Array
    error: Array
    freedom: Array

    def deviates(self) -> Array:
        """Distances from 0 in standard errors, on the normal scale; 0 where nothing is known."""
        size = np.where(np.abs(self.value) < NOTHING, 0.0, np.abs(self.value))
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(size == 0, 0.0, size / self.error)
            return np.nan_to_num(normal_scale(t, self.freedom), nan=0.0, posinf=1e9)


def pairs_and_rests(sizes: npt.ArrayLike) -> Array:
    """The contrasts of groups of these sizes: every pair (first less second), then each group less all others together.

    >>> pairs_and_rests([1, 1, 2])[3:].round(2).tolist()
    [[1.0, -0.33, -0.67], [-0.33, 1.0, -0.67], [-0.5, -0.5, 1.0]]
    """
    sizes = np.asarray(sizes, dtype=np.float64)
    each = np.eye(len(sizes))
    pairs = [each[i] - each[j] for i in range(len(sizes)) for j in range(i + 1, len(sizes))]
    rests = [unit - (1 - unit) * sizes / ((1 - unit) * sizes).sum() for unit in each] if len(sizes) > 2 else []
    return np.array([*pairs, *rests])


def group_contrasts(
    values: Array,
    codes: Codes,
    contrasts: Array,
    rng: np.random.Generator,
    shuffles: int,
    *,
    people: npt.NDArray[Any],
    tests: int = 1,
) -> Contrasts:
    """Contrasts of the groups' means; `codes` of −1 belong to no group. `tests` is how many such families there are."""
    groups = contrasts.shape[1]
    who = np.unique(people, return_inverse=True)[1]
    raw = Pictures(values, who)
    found = raw.moments(codes[None], groups)
    residuals = np.where(codes[:, None] >= 0, values - found.mean[0][np.maximum(codes, 0)], np.nan)
    alone = Pictures(residuals, who)
    step = max(1, CELLS // max(1, groups * len(codes) + 8 * contrasts.shape[0] * values.shape[1]))
    widest: list[list[Array]] = [[], []]
    distance = np.zeros(values.shape[1])
    for part in PersonShuffles(codes, who).parts(shuffles, rng):
        for start in range(0, len(part), step):
            some = part[start : start + step]
            for kept, pictures in zip(widest, (raw, alone), strict=True):
                means = pictures.moments(some, groups)
                kept.append(_contrasted(means, contrasts).deviates().max(axis=(1, 2), initial=0.0))
                distance += np.ptp(means.mean, axis=1).sum(axis=0) / shuffles if pictures is raw else 0.0
    return _judged(_contrasted(found, contrasts), widest, tests)._replace(by_chance=distance)


def _contrasted(means: CellMeans, contrasts: Array) -> _Estimates:
    """The contrasts of every grouping; NaN where one of their groups has no mean, or no spread to tell its error."""

    def over_groups(weights: Array, parts: Array) -> Array:
        return np.asarray(np.matmul(weights, np.nan_to_num(parts)))

    value = over_groups(contrasts, means.mean)
    squared = over_groups(contrasts**2, means.variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        free = over_groups(contrasts**4, means.variance**2 / np.maximum(means.people - 1, 1))
        freedom = np.where(free > 0, squared**2 / free, np.inf)
    unknown = over_groups(np.abs(contrasts), np.isnan(means.variance).astype(np.float64)) > 0
    return _Estimates(np.where(unknown, np.nan, value), np.sqrt(squared), freedom)


def _judged(found: _Estimates, widest: list[list[Array]], tests: int) -> Contrasts:
    """The contrasts of the first (and only) grouping, with bounds and p-values."""
    shuffled, residual = (np.sort(np.concatenate(parts)) if parts else np.zeros(0) for parts in widest)
    value, error, freedom = (part[0] for part in found)
    p_value, at_most = rank_p_values(found.deviates()[0], shuffled, tests)
    nothing = np.isnan(value) | np.isnan(error) | (error == 0) | (len(shuffled) == 0)
    margin = student_scale(critical_value(residual, tests), freedom) * error
    margin = np.where(nothing, np.nan, margin)
    absent = np.full(value.shape[1], np.nan)
    p_value = np.where(nothing, np.nan, p_value)
    return Contrasts(value, value - margin, value + margin, p_value, at_most & ~nothing, absent)


# Slopes


def slopes(
    values: Array, numbers: Array, rng: np.random.Generator, shuffles: int, *, people: npt.NDArray[Any], tests: int = 1
) -> Contrasts:
    """How much each column rises with one more of `numbers`: one contrast; columns must not lack values.

    Least squares; errors by person (cluster-robust).
    """
    order = np.argsort(np.unique(people, return_inverse=True)[1], kind="stable")
    values, numbers = values[order], numbers[order]
    who = np.unique(people[order], return_inverse=True)[1]
    values = values - values.mean(axis=0)
    levels, codes = np.unique(numbers, return_inverse=True)
    starts = np.flatnonzero(np.r_[True, who[1:] != who[:-1]])
    found = _sloped(values, numbers[None], starts)
    residual = values - (numbers - numbers.mean())[:, None] * found.value[0]
    step = max(1, CELLS // max(1, values.size))
    widest: list[list[Array]] = [[], []]
    for part in PersonShuffles(codes, who).parts(shuffles, rng):
        for start in range(0, len(part), step):
            shuffled = levels[part[start : start + step]]
            for kept, own in zip(widest, (values, residual), strict=True):
                kept.append(_sloped(own, shuffled, starts).deviates().max(axis=(1, 2), initial=0.0))
    return _judged(found, widest, tests)


def _sloped(values: Array, numbers: Array, starts: npt.NDArray[np.intp]) -> _Estimates:
    centred = numbers - numbers.mean(axis=1, keepdims=True)
    squares = (centred**2).sum(axis=1)[:, None]
    people = len(starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = centred @ values / squares
        pulls = centred[:, :, None] * (values[None] - slope[:, None, :] * centred[:, :, None])
        by_person = np.add.reduceat(pulls, starts, axis=1)
        error = np.sqrt(people / max(people - 2, 1) * (by_person**2).sum(axis=1)) / squares
    freedom = np.full_like(slope, max(people - 2, 1))
    return _Estimates(slope[:, None], error[:, None], freedom[:, None])


# Intersections


class Interactions(NamedTuple):
    """How far each cell departs from what its attributes add up to, `[n_cells, n_columns]`; partly pooled."""

    value: Array
    low: Array
    high: Array
    p_value: Array
    at_most: npt.NDArray[np.bool_]
    raw: Array
    """The departures without pooling."""


def interactions(
    values: Array,
    cells: Codes,
    design: Array,
    rng: np.random.Generator,
    shuffles: int,
    *,
    people: npt.NDArray[Any],
    tests: int = 1,
) -> Interactions:
    """Departures of the cells' means from the fit of `design[n_images, k]`, which holds the attributes alone.

    Chance comes from the residuals of that fit, whose signs are drawn anew for each person (a wild bootstrap).
    """
    vectors, lengths, _ = np.linalg.svd(design, full_matrices=False)
    basis = vectors[:, lengths > 1e-9 * lengths.max()]
    residual = values - basis @ (basis.T @ values)
    who = np.unique(people, return_inverse=True)[1]
    many = int(cells.max()) + 1
    each = np.eye(many)
    found = _contrasted(Pictures(residual, who).moments(cells[None], many), each)
    widest = np.sort(
        np.concatenate(
            [
                _contrasted(Pictures(drawn, who).moments(cells[None], many), each)
                .deviates()
                .reshape(many, -1, values.shape[1])
                .max(axis=(0, 2), initial=0.0)
                for drawn in _redrawn(residual, basis, who, rng, shuffles)
            ]
        )
    )
    value = found.value[0]
    p_value, at_most = rank_p_values(found.deviates()[0], widest, tests)
    free = found.freedom[0] + 1  # a cell's own people
    # Errors from the spread of all cells: five people alone tell little of their own.
    variance = (found.error[0] ** 2 * free * (free - 1)).sum(axis=0) / (free - 1).sum(axis=0)
    errors = np.maximum(np.sqrt(variance / free), NOTHING)
    pooled = [partial_pooling(value[:, k], errors[:, k]) for k in range(values.shape[1])]
    centre, spread = (np.stack([getattr(each, name) for each in pooled], axis=1) for name in ("mean", "error"))
    margin = critical_value(widest, tests) * spread
    return Interactions(centre, centre - margin, centre + margin, p_value, at_most, value)


def _redrawn(residual: Array, basis: Array, who: Codes, rng: np.random.Generator, draws: int) -> Iterator[Array]:
    """Residuals with new signs, and what they leave of the fit; many draws side by side as columns."""
    step = max(1, CELLS // (8 * residual.size))
    for start in range(0, draws, step):
        signs = rng.choice([-1.0, 1.0], size=(int(who.max()) + 1, min(step, draws - start)))[who]
        drawn = (signs[:, :, None] * residual[:, None, :]).reshape(len(residual), -1)
        yield drawn - basis @ (basis.T @ drawn)
