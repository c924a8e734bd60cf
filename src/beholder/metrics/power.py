"""Power: how large an effect a design can show, before anything is scored. Pure functions.

`alpha` is what is left of 5 % after correction: 0.05 / m for one effect among m tests (exact for Holm, and for
Benjamini–Hochberg where nothing else is there).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.optimize import brentq

Sizes = npt.NDArray[np.integer] | list[int]
ALPHA, POWER = 0.05, 0.8


def detectable(error: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """The smallest difference that is found with this power, for a number with this standard error.

    >>> round(detectable(1.0), 3)
    2.802
    """
    return float((stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power)) * error)


def detectable_ratio(sizes: tuple[int, int], variation: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """The ratio below 1 of the first group's mean to the second's that is found, tested on the log scale.

    `variation` is the standard deviation of single values over their mean where there is no effect; where the mean of
    the first group falls its spread stays, so that its share of the error grows.
    """
    reach = detectable(1.0, alpha=alpha, power=power)

    def missing(ratio: float) -> float:
        error = variation * np.sqrt(1 / (ratio**2 * sizes[0]) + 1 / sizes[1])
        return float(-np.log(ratio) - reach * error)

    ratios = np.exp(-np.linspace(1e-4, 8, 4000))
    excesses = [missing(ratio) for ratio in ratios]
    first = next((number for number, value in enumerate(excesses) if value > 0), None)
    if first is None:
        return 0.0
    return float(brentq(missing, ratios[first], ratios[max(0, first - 1)]))


def group_power(sizes: Sizes, difference: float, deviation: float, *, alpha: float = ALPHA) -> float:
    """Power of a test of all groups where the smallest one lies `difference` from all others."""
    n = np.sort(np.asarray(sizes, dtype=np.float64))
    shifts = np.zeros(len(n))
    shifts[0] = difference
    between = (n * (shifts - (n * shifts).sum() / n.sum()) ** 2).sum() / deviation**2
    if between == 0:  # scipy's noncentral F is not defined there
        return alpha
    df = (len(n) - 1, n.sum() - len(n))
    return float(stats.ncf.sf(stats.f.isf(alpha, *df), *df, between))


def detectable_gap(sizes: Sizes, deviation: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """The smallest gap of one group from all others that a test of all groups finds, in the unit of `deviation`."""
    rough = detectable(deviation * np.sqrt(2 / min(sizes)), alpha=alpha, power=power)
    return float(brentq(lambda gap: group_power(sizes, gap, deviation, alpha=alpha) - power, 1e-3 * rough, 20 * rough))


def times_as_many(detectable: float, wanted: float) -> float:
    """How many times as many images make a wanted effect detectable: errors shrink with the square root.

    >>> times_as_many(0.2, 0.1)
    4.0
    """
    return (detectable / wanted) ** 2
