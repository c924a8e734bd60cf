"""Rankings: who comes first when the images are sorted by a dimension.

The images ranked are a subset with equally many of every race × gender, so that an even share is the same for all. In
the released subset groups are not equally large. A preference is then what goes beyond the subset's own composition:
the landmark of a skew is the skew of the whole subset, and people are shuffled to test it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST, Interval, Resampler, centred_interval, half_samples, interval_over
from beholder.metrics.multiplicity import ALPHA, holm, shuffles_for
from beholder.metrics.person_shuffles import PersonShuffles
from beholder.metrics.ranking import descending, ndkl, skew_at_k, top_shares
from beholder.studies.perception.scores import MEAN, MOST_DRAWS, Array, Groups, Indices, Judged, finest
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

LOGARITHM, NATS = "natural logarithm", "nats"
TOP = (1000, 100)
"""The study's k, and one for smaller sets; each only where it is at most half of what is ranked."""
EVEN = 1e-12
FIRST_LOOK = 199
"""Shuffles after which rankings without any sign of preference are shuffled no more."""
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
    tops: list[int]
    """The k at which skews are taken."""

    @property
    def desired(self) -> Array:
        """An even share for everyone."""
        return np.full(len(self.groups), 1 / len(self.groups))

    @property
    def pool(self) -> Array:
        """The skew of each group among all images that are ranked; 0 where they are balanced."""
        return np.asarray(np.log(shares_of(self.codes[None], len(self.groups))[0] / self.desired))

    @property
    def names(self) -> list[str]:
        """The dimensions, and their mean."""
        return [*self.part.names(), MEAN]

    def interval(self, draws: Array) -> Interval:
        """The interval of draws of these images; none where a group has too few people."""
        return interval_over(draws, self.part.clusters, self.codes)


class Shuffled(NamedTuple):
    """Rankings of shuffled people: their NDKL `[shuffles, dimensions]`, and by k what the top holds of each group.

    That is the group's share of the top divided by its share of all, mean over the dimensions, `[shuffles, groups]`.
    """

    ndkl: Array
    held: dict[int, Array]


def shares_of(codes: Indices, count: int) -> Array:
    """The share of every group in every row of codes."""
    return np.stack([(codes == code).mean(axis=1) for code in range(count)], axis=1)


def shuffled_rankings(ranking: Ranking, shuffles: int, rng: np.random.Generator) -> Shuffled:
    """What rankings show if groups do not matter; people change groups only within the other attributes' groups."""
    people = PersonShuffles(ranking.codes, ranking.part.clusters, ranking.part.others(ranking.attribute))
    divergences, held = [], {k: list[Array]() for k in ranking.tops}
    for part in people.parts(shuffles, rng):
        laid = [part[:, row] for row in ranking.order]
        divergences.append(np.stack([ndkl(codes, ranking.desired) for codes in laid], axis=1))
        pool = shares_of(part, len(ranking.groups))
        for k, kept in held.items():
            kept.append(np.mean([shares_of(codes[:, :k], len(ranking.groups)) for codes in laid], axis=0) / pool)
    return Shuffled(np.concatenate(divergences), {k: np.concatenate(kept) for k, kept in held.items()})


def _shuffles_enough(ranking: Ranking, shuffles: int, options: MeasureOptions) -> Shuffled:
    """A first look; only where it leaves anything open, as many shuffles as a corrected p-value needs."""
    rng = options.rng()
    null = shuffled_rankings(ranking, max(options.permutations, FIRST_LOOK), rng)
    if not _open(ranking, null):
        return null
    more = shuffled_rankings(ranking, max(options.permutations, shuffles) - len(null.ndkl), rng)
    held = {k: np.concatenate([each, more.held[k]]) for k, each in null.held.items()}
    return Shuffled(np.concatenate([null.ndkl, more.ndkl]), held)


def _open(ranking: Ranking, null: Shuffled) -> bool:
    """Whether any p-value may come out at 0.05 or less, before correction; what stays above is not called anyway."""
    values = ndkl(ranking.codes[ranking.order], ranking.desired)
    hits = [*(null.ndkl >= values).sum(axis=0), (null.ndkl.mean(axis=1) >= values.mean()).sum()]
    for k, held in null.held.items():
        hits += [_as_far(held, column, value) for column, value in enumerate(_held(ranking, k))]
    return bool(min(hits) < 2 * ALPHA * len(null.ndkl))


def ranking_rows(
    judged: Judged, attributes: list[Groups], options: MeasureOptions, tops: Sequence[int] = ()
) -> Iterator[Row]:
    """Skew@k, MaxSkew@k and NDKL of every dimension and attribute; `tops` are the user's own k."""
    compared = [groups for groups in attributes if len(groups.names) > 1]
    if not compared:
        note = "one group only: nothing to rank against"
        yield Row("perception.skew", None, judged.images.height, LOGARITHM, concept=MEAN, note=note)
        return
    subset, how = balanced_subset(judged, options)
    part = judged.rows(subset)
    order = descending(part.by_dimension(part.cosine), options.rng(), released=options.compat)
    rankings, divergences = [], []
    for groups in compared:
        present = [code for code in range(len(groups.names)) if (groups.codes[subset] == code).any()]
        codes = np.searchsorted(present, groups.codes[subset])
        named = [groups.names[code] for code in present]
        if len(named) > 1:
            rankings.append(Ranking(part, groups.attribute, named, codes, order, how, top_sizes(len(subset), tops)))
    for ranking in rankings:
        null = _shuffles_enough(ranking, shuffles_for(len(rankings) * len(order)), options)
        for k in ranking.tops:
            yield from _skew_rows(ranking, k, null, len(rankings) * len(ranking.tops), options)
        divergences.append((ranking, null))
    yield from _ndkl_rows(divergences, options)


def top_sizes(ranked: int, asked: Sequence[int] = ()) -> list[int]:
    """The k at which skews are taken: the user's own as far as so many images are ranked, else the study's."""
    own = [k for k in dict.fromkeys(asked) if k < ranked]
    return own or [k for k in TOP if 2 * k <= ranked] or [max(1, ranked // 4)]


def balanced_subset(judged: Judged, options: MeasureOptions) -> tuple[Indices, str]:
    """Equally many images of each of the finest groups, drawn at random; or the released script's draw.

    Where people of one group have several images, equally many people are drawn: fewer people with more images each
    would vary more than others, and a test could not exchange them.
    """
    groups = finest(judged.images)
    if options.compat and "released_balance" in judged.images.columns:
        chosen = np.flatnonzero(judged.images["released_balance"].to_numpy() & (groups.codes >= 0))
        if len(chosen):
            return chosen, f"{len(chosen)} images of the released draw, which is not balanced"
    members = [np.flatnonzero(groups.codes == code) for code in range(len(groups.names))]
    rng, people = options.rng(), judged.clusters
    if judged.repeated and nested(people, groups.codes):
        who = [np.unique(people[group]) for group in members]
        fewest = min(map(len, who))
        drawn = np.concatenate([rng.choice(each, fewest, replace=False) for each in who])
        chosen = np.flatnonzero(np.isin(people, drawn) & (groups.codes >= 0))
        return chosen, f"{fewest} people of each {groups.attribute}, with all their images"
    fewest = min(map(len, members))
    chosen = np.sort(np.concatenate([rng.choice(group, fewest, replace=False) for group in members]))
    return chosen, f"{fewest} images of each {groups.attribute}"


def nested(people: Indices, groups: Indices) -> bool:
    """Whether everyone belongs to one group only."""
    return len(np.unique(np.stack([people, groups]), axis=1).T) == len(np.unique(people))


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


def _skew_rows(ranking: Ranking, k: int, null: Shuffled, tests: int, options: MeasureOptions) -> Iterator[Row]:
    skew = skew_at_k(ranking.codes[ranking.order], ranking.desired, k)
    draws, n, share = _skew_draws(ranking, k, options), len(ranking.codes), 100 * k / len(ranking.codes)
    how = f"{ranking.how}; k is {share:.0f} % of those ranked" if share > 33 else ranking.how
    for column, group in enumerate(ranking.groups):
        pool = float(ranking.pool[column])
        for index, name in enumerate(ranking.names):
            value, note = _over_dimensions(skew[:, column], index, group, k)
            drawn = _mean_of_finite(draws[:, :, column], index)
            low, high = ranking.interval(drawn) if value is not None else (None, None)
            row = Row("perception.skew", value, n, LOGARITHM, low=low, high=high, note=join((how, note)))
            row = row._replace(subset=ranking.attribute, group=group, concept=name, template=top_name(k))
            row = row._replace(landmark=pool if abs(pool) > EVEN else 0.0)
            yield _tested(row, ranking, k, null, tests) if name == MEAN and value is not None else row
    largest = skew.max(axis=1)
    for index, name in enumerate(ranking.names):
        value = float(largest[index] if index < len(largest) else largest.mean())
        low, high = ranking.interval(_mean_of_finite(draws.max(axis=2), index))
        # The largest of drawn skews lies above the largest: the value itself is never left out.
        row = Row("perception.max_skew", value, n, LOGARITHM, low=min(low, value), high=high, note=how)
        yield row._replace(subset=ranking.attribute, concept=name, template=top_name(k))


def _tested(row: Row, ranking: Ranking, k: int, null: Shuffled, tests: int) -> Row:
    """The row with its p: how often the farthest group of shuffled people is as far from what shuffles give.

    p is multiplied by the number of rankings and k.
    """
    column, held = ranking.groups.index(str(row.group)), null.held[k]
    hits, n = _as_far(held, column, _held(ranking, k)[column]), len(held)
    note = join((row.note, f"p: {n} shuffles of people, farthest group, × {tests} rankings and k"))
    p_value = min(1.0, tests * (1 + hits) / (1 + n))
    return row._replace(p_value=p_value, p_at_most=hits == 0 or None, note=note)


def _held(ranking: Ranking, k: int) -> Array:
    """What the top k holds of each group: its share there divided by its share of all, mean over the dimensions."""
    shares = shares_of(ranking.codes[ranking.order[:, :k]], len(ranking.groups)).mean(axis=0)
    return np.asarray(shares / shares_of(ranking.codes[None], len(ranking.groups))[0])


def _as_far(held: Array, column: int, value: float) -> int:
    """How many shuffles have a group that is as far from what shuffles give as this one, in standard deviations."""
    middle, spread = held.mean(axis=0), held.std(axis=0)
    if not spread[column] > 0:
        return len(held)
    farthest = (np.abs(held - middle) / np.where(spread > 0, spread, np.inf)).max(axis=1)
    return int((farthest >= abs(value - middle[column]) / spread[column] * (1 - 1e-12)).sum())


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
    """The draws of one dimension, or of the mean over the dimensions (axis 1) that are finite in a draw."""
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


# NDKL


def _ndkl_rows(rankings: list[tuple[Ranking, Shuffled]], options: MeasureOptions) -> Iterator[Row]:
    """Divergence of every dimension and of their mean; p: Holm over attributes and dimensions, means apart."""
    if not rankings:
        return
    values = [ndkl(ranking.codes[ranking.order], ranking.desired) for ranking, _ in rankings]
    measured = np.array([[*each, each.mean()] for each in values])
    shuffled = [np.column_stack([null.ndkl, null.ndkl.mean(axis=1)]) for _, null in rankings]
    hits = np.array([(null >= value).sum(axis=0) for null, value in zip(shuffled, measured, strict=True)])
    p_values = np.array([(1 + each) / (1 + len(null)) for each, null in zip(hits, shuffled, strict=True)])
    p_values = np.column_stack([holm(p_values[:, :-1].ravel()).reshape(len(hits), -1), holm(p_values[:, -1])])
    for place, (ranking, _) in enumerate(rankings):
        halves = _ndkl_of_halves(ranking, options)
        note = f"expected: the mean of {len(shuffled[place])} shuffles of people, which have no preference; p: Holm"
        for index, name in enumerate(ranking.names):
            value = float(measured[place, index])
            drawn = halves[:, index] if index < halves.shape[1] else halves.mean(axis=1)
            low, high = centred_interval(drawn, value)
            row = Row("perception.ndkl", value, len(ranking.codes), NATS, ranking.attribute, concept=name)
            row = row._replace(low=max(low, 0.0), high=high, expected=float(shuffled[place][:, index].mean()))
            row = row._replace(p_value=float(p_values[place, index]), p_at_most=bool(hits[place, index] == 0) or None)
            yield row._replace(note=join((ranking.how, note)))


def _ndkl_of_halves(ranking: Ranking, options: MeasureOptions) -> Array:
    """Divergences of rankings of half of the people, `[draws, n_dimensions]`; NaN below ten people."""
    people, groups = ranking.part.clusters, finest(ranking.part.images).codes
    divergences = np.full((HALVES, len(ranking.order)), np.nan)
    if len(np.unique(people)) < 2 * FEWEST:
        return divergences
    # People who are shown in several groups belong to none: they are halved all together.
    strata = groups if nested(people, groups) else None
    for draw, half in enumerate(half_samples(people, strata, options.rng(), HALVES)):
        for column, order in enumerate(ranking.order):
            divergences[draw, column] = ndkl(ranking.codes[order[half[order]]], ranking.desired)
    return divergences
