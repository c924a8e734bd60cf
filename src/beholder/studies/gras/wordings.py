"""What the wording of a question changes: how far differences between groups depend on it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from beholder.comparison.means import units_of
from beholder.comparison.strata import no_strata
from beholder.metrics.group_tests import Columns, Moments
from beholder.studies.gras.groups import Array, Grouped

SENSITIVE = 0.01
"""A trait is sensitive to the wording if P(Yes) moves by at least this much: one point."""


class WordingShares:
    """How much of the group differences changes with the wording; 0: all wordings agree, 1: all of it changes.

    Squared differences of noisy means are too large, and more so between wordings. So what people's spread adds to them
    on average is taken off.
    """

    def __init__(self, grouped: Grouped) -> None:
        shape = (-1, *grouped.answers.p_yes.shape[1:])
        units = units_of(grouped.flat, grouped.groups, grouped.people, no_strata(len(grouped.flat)))
        cells = units.values.reshape(shape)
        apart = cells - cells.mean(axis=2, keepdims=True)
        self._total, self._changing = (
            _squares(Columns(part.reshape(units.values.shape)).moments(units.groups, grouped.groups.names), shape[1:])
            for part in (cells, apart)
        )

    def share(self, traits: npt.NDArray[np.bool_]) -> float:
        """Over these traits together, each by the size of its differences; NaN where there are none."""
        known = traits & ~np.isnan(self._total) & ~np.isnan(self._changing)
        total = float(self._total[known].sum())
        return float(np.clip(self._changing[known].sum() / total, 0.0, 1.0)) if total > 0 else np.nan


def _squares(moments: Moments, shape: tuple[int, ...]) -> Array:
    """Sums of squared deviations of groups from the mean, less what chance adds, of every trait."""
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = moments.size / moments.size.sum(axis=0)
        deviations = moments.mean - moments.overall
        error = moments.variance / moments.size
    # A group's deviation is (1 − its weight) times its own mean, less the weights times all others.
    chance = (error * (1 - 2 * weights)).sum(axis=0) + len(weights) * (weights**2 * error).sum(axis=0)
    return np.asarray(((deviations**2).sum(axis=0) - chance).reshape(shape).sum(axis=1))
