"""Positive and negative traits above the mean in every wording: what shuffled labels give, and how sure a share is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.metrics.bootstrap import Resampler
from beholder.metrics.group_gaps import rank_p_values
from beholder.studies.gras.groups import NOTHING, Array, Grouped
from beholder.studies.gras.prompts import VALENCES

DRAWS = 300
NORMAL = 1.959963984540054


class ValenceShares(NamedTuple):
    """Per cent of the positive and of the negative traits above the mean: `[n_groups, n_valences]` each."""

    value: Array
    low: Array
    high: Array
    by_chance: Array
    """The mean over shuffled labels."""
    p_value: Array
    at_most: npt.NDArray[np.bool_]


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


def valence_shares(
    grouped: Grouped, value: Array, shuffled: Array, rng: np.random.Generator, tests: int
) -> ValenceShares:
    """The shares with their chance level, p-value and interval; `shuffled[n_shuffles, n_groups, n_valences]`.

    p: how often the share of any group, in its own standard deviations, lies as far off its chance level after a
    shuffle; times `tests`.
    """
    by_chance, spread = shuffled.mean(axis=0), shuffled.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(shuffled - by_chance) / spread
        mine = np.abs(value - by_chance) / spread
    widest = np.sort(np.nan_to_num(off, nan=0.0).max(axis=(1, 2), initial=0.0))
    p_value, at_most = rank_p_values(np.nan_to_num(mine, nan=0.0), widest, tests)
    # Draws of people scatter around what luck put above the mean, and so too little where nothing differs; there the
    # shuffles tell the scatter.
    error = np.maximum(_errors(grouped, rng), spread)
    untold = ~(spread > 0)
    return ValenceShares(
        value,
        np.maximum(value - NORMAL * error, 0.0),
        np.minimum(value + NORMAL * error, 100.0),
        by_chance,
        np.where(untold, np.nan, p_value),
        at_most & ~untold,
    )


def _errors(grouped: Grouped, rng: np.random.Generator) -> Array:
    """How much a share moves with other people: the standard deviation over draws of people within their groups."""
    inside = grouped.codes >= 0
    codes, values = grouped.codes[inside], grouped.values[inside]
    values = np.nan_to_num(values - np.nanmean(values, axis=0)) if np.isnan(values).any() else values
    resampler = Resampler(grouped.people[inside], rng, DRAWS, strata=codes)
    sizes = np.bincount(codes, minlength=len(grouped.groups)) / len(codes)
    shares = []
    for weights in resampler.weights():
        means = np.stack(
            [
                (weights[:, codes == k] @ values[codes == k]) / weights[:, codes == k].sum(axis=1, keepdims=True)
                for k in range(len(grouped.groups))
            ],
            axis=1,
        )
        deviations = means - (sizes[None, :, None] * means).sum(axis=1, keepdims=True)
        deviations[np.abs(deviations) < NOTHING] = 0.0
        shape = (len(means), len(grouped.groups), len(grouped.answers.traits), len(grouped.answers.templates))
        shares.append(above_mean(deviations.reshape(shape), grouped.answers.valences))
    return np.asarray(np.concatenate(shares).std(axis=0, ddof=1))
