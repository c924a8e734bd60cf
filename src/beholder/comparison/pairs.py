"""Pairs: two models (or two moments) that saw the same people, compared person by person.

What each unit (a person, or a few people together) adds to the differences is known. If the models did not differ, they
could change places for any unit: its share would change its sign. All differences are flipped together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from beholder.comparison.family import ENDLESS, Part, largest_of, normal_scale
from beholder.comparison.means import SURE
from beholder.comparison.shuffles import SHUFFLES
from beholder.comparison.verdicts import FEWEST_ARRANGEMENTS

Array = npt.NDArray[np.float64]
NOTHING = 1e-6
"""Relative to the difference: spreads below this are rounding errors."""


def shares_of(whole: Array, without: Array, count: Array, left: Array) -> tuple[Array, Array]:
    """What each unit adds to differences, and its weight, from leaving it out: for `compare_pairs`.

    `without[n_units, n_columns]` are the differences without each unit; `count` and `left` are what the numbers count
    (images, people), with all units and without each.

    >>> shares_of(np.array([2.0]), np.array([[3.0], [1.0]]), np.array([2]), np.array([[1], [1]]))[0].ravel().tolist()
    [0.5, 1.5]
    """
    weights = np.maximum(1 - left / np.maximum(count, 1), 0.0)
    total = weights.sum(axis=0)
    weights = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / max(len(left), 1))
    shares = (whole - without) * (1 - weights) + weights * whole
    return shares + (whole - shares.sum(axis=0)) * weights, weights


def compare_pairs(shares: Array, weights: Array, rng: np.random.Generator, shuffles: int = SHUFFLES) -> Part:
    """Differences from what units add to them, `shares[n_units, n_columns]`: a part `[n_columns]` of a family.

    `weights` are what units would add to a difference of 1 that is alike for all: each column of them adds up to 1.
    A column with a NaN is not told.

    >>> part = compare_pairs(np.full((8, 1), 0.125), np.full((8, 1), 0.125), np.random.default_rng(0))
    >>> part.value, part.arrangements
    (array([1.]), 256.0)
    """
    units, known = len(shares), ~np.isnan(shares).any(axis=0)
    shares, weights = np.where(known, shares, 0.0), np.where(known, weights, 0.0)
    exact = 2.0**units <= shuffles
    signs = _all_signs(units) if exact else rng.choice([-1.0, 1.0], size=(shuffles, units))
    value, error, freedom = _estimates(np.ones((1, units)), shares, weights)
    deviate = _deviates(value, error, freedom)[0]
    scale, largest = largest_of(_deviates(*_estimates(signs, shares, weights)), deviate, exact=exact)
    moving = np.where(known, (np.abs(shares) > 0).sum(axis=0), 0)
    people = np.where(2.0**moving < FEWEST_ARRANGEMENTS, 0, moving)
    # If a share q of people did not differ, n units would all differ alike with probability (1 − q)ⁿ.
    least = np.where(error[0] > 0, 0.0, np.abs(value[0]) * (1 - SURE ** (1 / np.maximum(moving, 1))))
    told = np.where(known, value[0], np.nan), error[0], freedom[0], deviate
    return Part(*told, scale, largest, exact, 2.0**units, people, least)


def _all_signs(units: int) -> Array:
    """Every arrangement of signs, all as they are first."""
    return np.asarray(1.0 - 2.0 * ((np.arange(2**units)[:, None] >> np.arange(units)) & 1))


def _estimates(signs: Array, shares: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Differences after flips, their errors and degrees of freedom: `[n_flips, n_columns]` each.

    Freedom is that of as many normal units as would have these fourth powers: a few that count for all count as few.
    """
    value = signs @ shares
    turned = value * (signs @ (shares * weights))
    squares = (shares**2).sum(axis=0) - 2 * turned + value**2 * (weights**2).sum(axis=0)
    fourths = (
        (shares**4).sum(axis=0)
        - 4 * value * (signs @ (shares**3 * weights))
        + 6 * value**2 * (shares**2 * weights**2).sum(axis=0)
        - 4 * value**3 * (signs @ (shares * weights**3))
        + value**4 * (weights**4).sum(axis=0)
    )
    squares = np.where(squares <= NOTHING**2 * value**2, 0.0, squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(squares / np.maximum(1 - (weights**2).sum(axis=0), 1e-9))
        alike = np.where(squares > 0, 3 * squares**2 / fourths, np.inf)
    return value, error, np.clip(0.8 * alike - 1, 1.0, max(len(shares) - 1, 1))


def _deviates(value: Array, error: Array, freedom: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(value == 0, 0.0, np.abs(value) / error)
    return np.minimum(np.nan_to_num(normal_scale(t, freedom), nan=0.0, posinf=ENDLESS), ENDLESS)
