"""SC-WEAT: does a word lie nearer to one group of images than to another, in standard deviations?

s = mean cos(word, A) − mean cos(word, B); effect size = s / standard deviation over A ∪ B. 0 means neither is nearer;
positive means A is. Pure functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Association(NamedTuple):
    """Of every column (a word or a dimension): the difference of means and the effect size."""

    difference: Array
    effect: Array


def sc_weat(a: npt.NDArray[Any], b: npt.NDArray[Any], *, ddof: int = 1) -> Association:
    """Difference of means and effect size of every column; rows are the images of each group.

    `ddof` 1 (the default) takes the sample's standard deviation, 0 the population's: both are in use.

    >>> sc_weat(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]), ddof=0).effect.round(3)
    array([-1.789])
    """
    a, b = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in (a, b))
    difference = a.mean(axis=0) - b.mean(axis=0)
    return Association(difference, difference / spreads(np.concatenate([a, b]), ddof=ddof))


def spreads(values: Array, *, ddof: int = 1) -> Array:
    """The standard deviation of every column; NaN where there is none, so that it has no effect size."""
    spread = values.std(axis=0, ddof=ddof)
    rounding = 1e-12 * np.abs(values).max(axis=0, initial=0.0)
    return np.asarray(np.where(spread > rounding, spread, np.nan))


# Markedness


def unmarked(neutral: npt.NDArray[Any], own_word: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """1 where the neutral prompt scores above the group's own word, 0 where not, NaN where either is missing.

    >>> unmarked(np.array([0.3, 0.1, np.nan]), np.array([0.2, 0.2, 0.2]))
    array([ 1.,  0., nan])
    """
    missing = np.isnan(neutral) | np.isnan(own_word)
    return np.where(missing, np.nan, (np.asarray(neutral) > np.asarray(own_word)).astype(np.float64))
