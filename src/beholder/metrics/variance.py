"""Variance: how much of the spread of a score goes with each attribute.

Least squares on the levels of all attributes at once. An attribute's share is what the fit loses without it, less what
chance gives (omega squared): 0 none, 1 all; it may fall below 0. In a balanced design the shares add up; elsewhere what
attributes have in common belongs to none of them. p is that of the F test; where a person has several images, people
and not images are shuffled. Pure functions for many columns at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from beholder.metrics.clustered import indicator
from beholder.metrics.person_shuffles import PersonShuffles, has_repeats

Array = npt.NDArray[np.float64]
PART = 250
"""Shuffles held at once."""


class Shares(NamedTuple):
    """Of every attribute (rows) and column: share of variance and p of "no share"; and what is left over."""

    names: list[str]
    share: Array
    p_value: Array
    rest: Array
    at_most: npt.NDArray[np.bool_]
    """Where no shuffle came as far: the p-value is at most what is given."""


class People(NamedTuple):
    """Who is shown in each image, and how often people are shuffled."""

    who: npt.NDArray[Any]
    shuffles: int
    rng: np.random.Generator


def variance_shares(
    values: npt.NDArray[Any], factors: Mapping[str, npt.NDArray[Any]], people: People | None = None
) -> Shares | None:
    """Shares of each factor in every column of `values`; None where no factor varies or too few rows are there."""
    values = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    levels = {name: _levels(labels) for name, labels in factors.items()}
    levels = {name: columns for name, columns in levels.items() if columns.shape[1]}
    total = ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    left, rank = _residual(values, list(levels.values()))
    free = len(values) - rank
    if not levels or free < 1:
        return None
    error = left / free
    shares, p_values, at_most = [], [], []
    for name in levels:
        others = [columns for other, columns in levels.items() if other != name]
        without, smaller = _residual(values, others)
        df, gained = rank - smaller, without - left
        with np.errstate(divide="ignore", invalid="ignore"):
            shares.append((gained - df * error) / (total + error))
            p_value = special.fdtrc(df, free, gained / df / error) if df else np.full_like(error, np.nan)
        hits = _hits(values, factors[name], others, people) if people is not None and df else None
        p_values.append(p_value if hits is None or people is None else (hits + 1) / (people.shuffles + 1))
        at_most.append(np.zeros(len(error), bool) if hits is None else hits == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = free * error / total
    return Shares(list(levels), np.array(shares), np.array(p_values), rest, np.array(at_most))


def _hits(values: Array, labels: npt.NDArray[Any], others: list[Array], people: People) -> Array | None:
    """How many shuffles of people explain as much, in every column; None where the F test holds.

    It holds where nobody has several images, and for who is shown: if that has no share, images are independent.
    """
    _, codes = np.unique(labels, return_inverse=True)
    shuffles = PersonShuffles(codes, people.who)
    count = int(codes.max()) + 1
    if not has_repeats(people.who) or count == shuffles.n_blocks:
        return None
    basis = _basis(np.concatenate([np.ones((len(values), 1)), *others], axis=1))
    off = values - basis @ (basis.T @ values)
    in_blocks = indicator(shuffles.block_of, shuffles.n_blocks)
    sums = in_blocks @ np.concatenate([off, basis, np.ones((len(values), 1))], axis=1)
    drawn = [
        _gained(part, sums, off.shape[1], count)
        for part in (
            shuffles.blocks(min(PART, people.shuffles - start), people.rng) for start in range(0, people.shuffles, PART)
        )
    ]
    observed = _gained(shuffles.groups[None], sums, off.shape[1], count)[0]
    return np.asarray((np.concatenate(drawn) >= observed * (1 - 1e-9)).sum(axis=0), dtype=np.float64)


def _gained(groups: npt.NDArray[np.int_], sums: Array, columns: int, count: int) -> Array:
    """What the fit gains by these groups of the blocks, `[shuffles, columns]`.

    `sums` are, by block: the values that other factors leave unexplained, an orthonormal basis of those, and the
    number of images.
    """
    many = len(groups)
    rows = np.where(groups > 0, np.arange(many)[:, None] * (count - 1) + groups - 1, -1)
    inside = np.flatnonzero(rows.ravel() >= 0)
    places = np.tile(np.arange(groups.shape[1]), many)[inside]
    laid = sparse.csr_array(
        (np.ones(len(inside)), (rows.ravel()[inside], places)), shape=(many * (count - 1), groups.shape[1])
    )
    by_level = (laid @ sums).reshape(many, count - 1, -1)
    off, basis, sizes = np.split(by_level, [columns, by_level.shape[2] - 1], axis=2)
    squares = np.eye(count - 1) * sizes - basis @ basis.transpose(0, 2, 1)
    solved = np.linalg.pinv(squares, rcond=1e-10, hermitian=True) @ off
    return np.asarray((off * solved).sum(axis=1))


def _basis(columns: Array) -> Array:
    """An orthonormal basis of the columns."""
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, size > 1e-10 * size.max()])


def _levels(labels: npt.NDArray[Any]) -> Array:
    """A column for every level but the first."""
    _, codes = np.unique(labels, return_inverse=True)
    return np.asarray(codes[:, None] == np.arange(1, codes.max(initial=0) + 1), dtype=np.float64)


def _residual(values: Array, columns: list[Array]) -> tuple[Array, int]:
    """Sum of squares that is left, and the rank of the fit."""
    fit = np.concatenate([np.ones((len(values), 1)), *columns], axis=1)
    solution, _, rank, _ = np.linalg.lstsq(fit, values, rcond=None)
    return np.asarray(((values - fit @ solution) ** 2).sum(axis=0)), int(rank)
