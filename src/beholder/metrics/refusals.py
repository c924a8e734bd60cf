"""Refusals: does a model decline to answer more often for some people than for others?

Pure functions: arrays in, a small named result out. A refusal is an answer that is neither of the words asked for; it
is an outcome of its own, not a missing score.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from beholder.core.errors import UsageError

FEW = 5.0
"""Expected count below which chi-square's approximation is poor."""


class RefusalDifference(NamedTuple):
    """How often each group was refused, and how likely so uneven a table is if refusals fall on all alike."""

    shares: dict[str, float]
    """Share of refusals by group: 0 none, 1 all."""
    refused: dict[str, int]
    n: dict[str, int]
    p_value: float | None
    """None where there is nothing to compare."""
    test: str
    note: str | None = None

    @property
    def highest(self) -> str:
        """The group refused most often."""
        return max(self.shares, key=lambda group: self.shares[group])

    @property
    def lowest(self) -> str:
        """The group refused least often."""
        return min(self.shares, key=lambda group: self.shares[group])

    @property
    def gap(self) -> float:
        """Highest share minus lowest; 0 means alike."""
        return self.shares[self.highest] - self.shares[self.lowest]


def refusal_difference(refused: npt.NDArray[Any], groups: npt.NDArray[Any]) -> RefusalDifference:
    """Fisher's exact test for two groups, chi-square (without correction) for more.

    `refused` is 0 or 1 for each of some independent answers: where every picture met many prompts, reduce it to one
    value a picture first (`refused.max(axis=1)`), or the p-value counts one person many times. NaN is left aside.

    >>> refusal_difference(np.array([1, 1, 0, 0]), np.array(["a", "a", "b", "b"])).shares
    {'a': 1.0, 'b': 0.0}
    """
    values, names = _checked(refused, groups)
    labels = [str(name) for name in np.unique(names)]
    counts = {label: int(values[names == label].sum()) for label in labels}
    sizes = {label: int((names == label).sum()) for label in labels}
    shares = {label: counts[label] / sizes[label] for label in labels}
    p_value, test, note = _test(np.array([[counts[label], sizes[label] - counts[label]] for label in labels]))
    return RefusalDifference(shares, counts, sizes, p_value, test, note)


def _checked(refused: npt.NDArray[Any], groups: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    values, names = np.asarray(refused, dtype=np.float64), np.asarray(groups).astype(str)
    if values.ndim != 1 or values.shape != names.shape:
        raise UsageError(f"Refusals and groups are two lists of one length, not {values.shape} and {names.shape}.")
    there = ~np.isnan(values)
    values, names = values[there], names[there]
    if not np.isin(values, (0.0, 1.0)).all():
        raise UsageError("A refusal is 0 or 1; shares of several draws are reduced first, as in (refused > 0.5).")
    if not values.size:
        raise UsageError("There are no answers to compare.")
    return values, names


def _test(table: npt.NDArray[np.int64]) -> tuple[float | None, str, str | None]:
    """p-value, the test's name and what speaks against it, from rows of (refused, answered)."""
    if len(table) < 2:
        return None, "none", "there is only one group"
    if not table.sum(axis=0).all():
        return None, "none", "all answers were refused" if table[:, 0].any() else "no answer was refused"
    if len(table) == 2:
        return float(stats.fisher_exact(table)[1]), "Fisher's exact test", None
    found = stats.chi2_contingency(table, correction=False)
    least = float(found.expected_freq.min())
    note = f"the smallest expected count is {least:.1f}: the p-value is rough" if least < FEW else None
    return float(found.pvalue), "chi-square test", note
