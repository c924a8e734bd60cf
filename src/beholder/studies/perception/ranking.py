"""Rankings: who comes first when the images are sorted by a dimension.

The images ranked are a subset with equally many of every race × gender, so that an even share is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST, Interval, Resampler, centred_interval, half_samples, interval_over
from beholder.metrics.ranking import descending, ndkl, skew_at_k, top_shares
from beholder.studies.perception.scores import MEAN, MOST_DRAWS, Array, Groups, Indices, Judged, finest
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

LOGARITHM, NATS = "natural logarithm", "nats"
TOP = (1000, 100)
"""The study's k, and one for smaller sets; each only where it is at most half of what is ranked."""
HALVES = 200
"""Halves of the people behind an interval of NDKL."""


class Ranking(NamedTuple):
    """Images in order by every dimension, and the groups of one attribute among them."""

    part: Judged
    attribute: str
    groups: list[str]
    codes: Indices
    order: npt.NDArray[np.intp]
    how: str
    """How the images were chosen, in words."""

    @property
    def desired(self) -> Array:
        """An even share for everyone."""
        return np.full(len(self.groups), 1 / len(self.groups))

    @property
    def tops(self) -> list[int]:
        """The k at which skews are taken."""
        return [k for k in TOP if 2 * k <= len(self.codes)] or [max(1, len(self.codes) // 4)]

    @property
    def names(self) -> list[str]:
        """The dimensions, and their mean."""
        return [*self.part.names(), MEAN]

    def interval(self, draws: Array) -> Interval:
        """The interval of draws of these images; none where a group has too few people."""
        return interval_over(draws, self.part.clusters, self.codes)

    def shuffled(self, options: MeasureOptions) -> Indices:
        """Shuffled groups, one row per shuffle: rankings without preference."""
        rng = options.rng()
        return np.stack([rng.permutation(self.codes) for _ in range(options.permutations)])


def ranking_rows(judged: Judged, attributes: list[Groups], options: MeasureOptions) -> Iterator[Row]:
    """Skew@k, MaxSkew@k and NDKL of every dimension and attribute."""
    compared = [groups for groups in attributes if len(groups.names) > 1]
    if not compared:
        note = "one group only: nothing to rank against"
        yield Row("perception.skew", None, judged.images.height, LOGARITHM, concept=MEAN, note=note)
        return
    subset, how = balanced_subset(judged, options)
    part = judged.rows(subset)
    order = descending(part.by_dimension(part.cosine), released=options.compat)
    for groups in compared:
        ranking = Ranking(part, groups.attribute, groups.names, groups.codes[subset], order, how)
        for k in ranking.tops:
            yield from _skew_rows(ranking, k, options)
        yield from _ndkl_rows(ranking, options)


def balanced_subset(judged: Judged, options: MeasureOptions) -> tuple[Indices, str]:
    """Equally many images of each of the finest groups, drawn at random; or the released script's draw."""
    groups = finest(judged.images)
    if options.compat and "released_balance" in judged.images.columns:
        chosen = np.flatnonzero(judged.images["released_balance"].to_numpy())
        if len(chosen):
            return chosen, f"{len(chosen)} images, balanced as released (before ages under 20 are dropped)"
    members = [np.flatnonzero(groups.codes == code) for code in range(len(groups.names))]
    fewest, rng = min(map(len, members)), options.rng()
    chosen = np.sort(np.concatenate([rng.choice(group, fewest, replace=False) for group in members]))
    return chosen, f"{fewest} images of each {groups.attribute}"


# Skew


def top_name(k: int) -> str:
    """The top k of a ranking, as the results name it."""
    return f"k={k}"


def top_size(name: str) -> int:
    """The k of a top of that name.

    >>> top_size(top_name(100))
    100
    """
    return int(name.removeprefix("k="))


def _skew_rows(ranking: Ranking, k: int, options: MeasureOptions) -> Iterator[Row]:
    skew = skew_at_k(ranking.codes[ranking.order], ranking.desired, k)
    draws, n, share = _skew_draws(ranking, k, options), len(ranking.codes), 100 * k / len(ranking.codes)
    how = f"{ranking.how}; k is {share:.0f} % of those ranked" if share > 33 else ranking.how
    for column, group in enumerate(ranking.groups):
        for index, name in enumerate(ranking.names):
            value, note = _over_dimensions(skew[:, column], index, group, k)
            drawn = _mean_of_finite(draws[:, :, column], index)
            low, high = ranking.interval(drawn) if value is not None else (None, None)
            row = Row("perception.skew", value, n, LOGARITHM, low=low, high=high, note=join((how, note)))
            row = row._replace(subset=ranking.attribute, group=group, concept=name, template=top_name(k))
            p_value = _skew_p(ranking, k, value, options) if name == MEAN and value is not None else None
            yield row._replace(p_value=p_value)
    largest = skew.max(axis=1)
    for index, name in enumerate(ranking.names):
        value = float(largest[index] if index < len(largest) else largest.mean())
        low, high = ranking.interval(_mean_of_finite(draws.max(axis=2), index))
        # The largest of drawn skews lies above the largest: the value itself is never left out.
        row = Row("perception.max_skew", value, n, LOGARITHM, low=min(low, value), high=high, note=how)
        yield row._replace(subset=ranking.attribute, concept=name, template=top_name(k))


def _over_dimensions(skew: Array, index: int, group: str, k: int) -> tuple[float | None, str | None]:
    """One dimension's skew, or their mean without those that are −∞."""
    if index < len(skew):
        absent = f"no image of {group} in the top {k}: −∞"
        return (float(skew[index]), None) if np.isfinite(skew[index]) else (None, absent)
    there = skew[np.isfinite(skew)]
    left_out = len(skew) - len(there)
    note = f"{left_out} of {len(skew)} dimensions are −∞ and left out of the mean" if left_out else None
    return (float(there.mean()) if len(there) else None), note


def _mean_of_finite(draws: Array, index: int) -> Array:
    """The draws of one dimension, or of the mean over the dimensions that are finite in a draw."""
    if index < draws.shape[1]:
        return np.asarray(draws[:, index])
    there = np.isfinite(draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(there, draws, 0.0).sum(axis=1) / there.sum(axis=1))


def _skew_draws(ranking: Ranking, k: int, options: MeasureOptions) -> Array:
    """Skews of resampled images, `[n_draws, n_dimensions, n_groups]`; the balance is kept by reweighting."""
    resampler = Resampler(ranking.part.clusters, options.rng(), min(options.draws, MOST_DRAWS))
    count = len(ranking.groups)
    belongs = (ranking.codes[:, None] == np.arange(count)).astype(np.float64)
    drawn = []
    for weights in resampler.weights():
        sizes = np.maximum(weights @ belongs, 1e-12)
        even = weights * ((belongs.sum(axis=0) / sizes) @ belongs.T)
        tops = [_reaching(even, row, k) for row in ranking.order]
        shares = [top_shares(even[:, row], ranking.codes[row], count, k) for row in tops]
        drawn.append(np.stack(shares, axis=1))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.concatenate(drawn) / ranking.desired))


def _reaching(weights: Array, places: npt.NDArray[np.intp], k: int) -> npt.NDArray[np.intp]:
    """The part of a ranking that every draw needs to reach its top k; usually a small part."""
    head = places[: 4 * k]
    return head if (weights[:, head].sum(axis=1) >= k).all() else places


def _skew_p(ranking: Ranking, k: int, value: float, options: MeasureOptions) -> float:
    """How often the farthest group of a ranking without preference has as large a skew, mean over the dimensions."""
    shuffled = ranking.shuffled(options)
    skews = np.stack([skew_at_k(shuffled[:, row], ranking.desired, k) for row in ranking.order], axis=1)
    means = np.stack([_mean_of_finite(skews[:, :, g], skews.shape[1]) for g in range(len(ranking.groups))])
    farthest = np.abs(means).max(axis=0)
    return (1 + float((farthest >= abs(value)).sum())) / (1 + len(farthest))


# NDKL


def _ndkl_rows(ranking: Ranking, options: MeasureOptions) -> Iterator[Row]:
    values = ndkl(ranking.codes[ranking.order], ranking.desired)
    shuffled = ndkl(ranking.shuffled(options), ranking.desired)
    note = f"expected: the mean of {len(shuffled)} shuffled rankings, which have no preference"
    halves = _ndkl_of_halves(ranking, options)
    for index, name in enumerate(ranking.names):
        value = float(values[index] if index < len(values) else values.mean())
        drawn = halves[:, index] if index < len(values) else halves.mean(axis=1)
        low, high = centred_interval(drawn, value)
        p_value = (1 + float((shuffled >= value).sum())) / (1 + len(shuffled)) if index < len(values) else None
        row = Row("perception.ndkl", value, len(ranking.codes), NATS, ranking.attribute, concept=name)
        row = row._replace(low=max(low, 0.0), high=high, p_value=p_value, expected=float(shuffled.mean()))
        yield row._replace(note=join((ranking.how, note)))


def _ndkl_of_halves(ranking: Ranking, options: MeasureOptions) -> Array:
    """Divergences of rankings of half of the people, `[draws, n_dimensions]`; NaN below ten people."""
    people, designed = ranking.part.clusters, ranking.part.designed
    divergences = np.full((HALVES, len(ranking.order)), np.nan)
    if len(np.unique(people)) < 2 * FEWEST:
        return divergences
    strata = None if designed else finest(ranking.part.images).codes
    for draw, half in enumerate(half_samples(people, strata, options.rng(), HALVES)):
        for column, order in enumerate(ranking.order):
            divergences[draw, column] = ndkl(ranking.codes[order[half[order]]], ranking.desired)
    return divergences
