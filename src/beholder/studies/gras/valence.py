"""Positive and negative traits above the mean in every wording, and what shuffled labels give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from beholder.comparison import Part, ShuffledGroups, part_from_null
from beholder.studies.gras.groups import Array, Grouped
from beholder.studies.gras.prompts import VALENCES

ALIKE = 1e-6
"""Means in single precision that differ by less are equal."""
HELD = 1 << 23
"""Numbers worked on at once."""


def above_mean(deviations: Array, valences: list[str]) -> Array:
    """Per cent of a valence's traits whose group mean lies above the overall mean in every wording.

    `deviations[..., n_groups, n_traits, n_wordings]` become `[..., n_groups, n_valences]`; traits that were not asked
    of every group in every wording do not count, and NaN is a valence without traits.
    """
    above = np.asarray((deviations > 0).all(axis=-1))
    whole = ~np.isnan(deviations).any(axis=(-3, -1))
    shares = []
    for kind in VALENCES:
        traits = np.array([valence == kind for valence in valences])
        counted = (whole & traits)[..., None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares.append(100 * (above & counted).sum(axis=-1) / counted.sum(axis=-1))
    return np.stack(shares, axis=-1)


def shuffled_shares(grouped: Grouped, rng: np.random.Generator, shuffles: int) -> Part:
    """The shares `[n_groups, n_valences]` against those that people's labels give, shuffled within the strata."""
    groups, people = grouped.groups, grouped.people
    moves = ShuffledGroups(groups, people, rng, grouped.strata(groups), shuffles)
    means = _GroupMeans(grouped)
    value = means.shares(groups.codes[None])[0]
    parts = [means.shares(some) for part in moves.parts() for some in means.portions(part)]
    null = np.concatenate([np.empty((0, *value.shape)), *parts])
    asked = ~np.isnan(value)  # a valence without traits has no share
    return part_from_null(
        np.where(asked, value, 0.0),
        np.where(asked, null, 0.0),
        people=np.broadcast_to(np.array(groups.sizes(people))[:, None], value.shape),
        arrangements=moves.moves.arrangements,
        exact=moves.moves.exact,
    )


class _GroupMeans:
    """Means of groups in every (trait, wording), for many groupings: in single precision, since only signs count."""

    def __init__(self, grouped: Grouped) -> None:
        self._grouped = grouped
        values = grouped.flat[grouped.inside].astype(np.float64)
        self._there = None if not np.isnan(values).any() else (~np.isnan(values)).astype(np.float32)
        self._values = np.nan_to_num(values - np.nanmean(values, axis=0)).astype(np.float32)

    def portions(self, codes: npt.NDArray[np.intp]) -> Iterator[npt.NDArray[np.intp]]:
        """Groupings, as many at once as memory should hold."""
        groups = len(self._grouped.groups.names)
        step = max(1, HELD // (groups * sum(self._values.shape)))
        yield from (codes[start : start + step] for start in range(0, len(codes), step))

    def shares(self, codes: npt.NDArray[np.intp]) -> Array:
        """`[n_groupings, n_groups, n_valences]`: the shares of each grouping of the images."""
        answers, names = self._grouped.answers, self._grouped.groups.names
        belongs = codes[:, None, self._grouped.inside] == np.arange(len(names))[:, None]
        flat = belongs.astype(np.float32).reshape(-1, belongs.shape[2])
        size = flat.sum(axis=1)[:, None] if self._there is None else flat @ self._there
        with np.errstate(invalid="ignore", divide="ignore"):
            deviations = (flat @ self._values) / size
        deviations[np.abs(deviations) < ALIKE] = 0.0
        return above_mean(deviations.reshape(*belongs.shape[:2], *answers.p_yes.shape[1:]), answers.valences)
