"""Jackknife: how far a number could have come out otherwise, from leaving out some of the people in turn.

For numbers that come from anywhere, a user's own measure among them: all that is asked is to be computed again
without a twentieth of the people, twenty times. Two models that saw the same people leave out the same ones, so
that what a difference owes to who was photographed cancels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

Array = npt.NDArray[np.float64]


class Uncertain(NamedTuple):
    """Bounds of 95 % intervals, and p-values of the value being 0; NaN where there is too little to say."""

    low: Array
    high: Array
    p_value: Array


def dealt(
    people: npt.NDArray[Any], alike: npt.NDArray[Any], parts: int, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """The part in which each image is left out: a person's images together, people who are alike spread evenly.

    `alike` says for each image what its person is like (any number that is the same for people of one kind).
    """
    names, first, person = np.unique(people, return_index=True, return_inverse=True)
    order = np.lexsort((rng.random(len(names)), alike[first]))
    part = np.empty(len(names), dtype=np.intp)
    part[order] = np.arange(len(names)) % parts
    return np.asarray(part[person])


def left_out_in_turn(values: Array, without: Array, level: float = 0.95, *, reach: Array | float = np.inf) -> Uncertain:
    """Intervals of `values`, from the same numbers without each part, `[parts, n_values]`.

    The delete-a-group jackknife: the parts' spread, times parts − 1, is that of the whole. A number that one part
    alone makes possible has no interval.

    A value that lies between −reach and reach is judged on the scale of the inverse hyperbolic tangent (Fisher's z of
    a correlation), so that its interval lies there too.
    """
    parts = len(without)
    error = np.sqrt((parts - 1) / parts * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    error = np.where(error > np.abs(values) * 1e-12, error, np.nan)  # no spread at all says nothing
    reach = np.broadcast_to(reach, np.shape(values))
    bounded = np.isfinite(reach) & (np.abs(values) < reach)
    unit = np.where(bounded, reach, 1.0)
    share = np.where(bounded, values / unit, 0.0)
    scaled = np.where(bounded, np.arctanh(share), values)
    error = np.where(bounded, error / unit / (1 - share**2), error)
    width = student.ppf((1 + level) / 2, parts - 1) * error
    low, high = (np.where(bounded, unit * np.tanh(end), end) for end in (scaled - width, scaled + width))
    return Uncertain(low, high, np.asarray(2 * student.sf(np.abs(scaled) / error, parts - 1)))
