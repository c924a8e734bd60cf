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

from beholder.comparison import Comparison, Groups, Part, ShuffledGroups, Strata, comparison_at, judge
from beholder.comparison.family import Judged as Verdicts
from beholder.core.results import Row
from beholder.metrics.association import descending, ndkl, skew_at_k
from beholder.studies.perception.scores import MEAN, Array, Indices, Judged, finest
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

LOGARITHM, NATS = "natural logarithm", "nats"
TOP = (1000, 100)
"""The study's k, and one for smaller sets; each only where it is at most half of what is ranked."""
EVEN = 1e-12


class Ranking(NamedTuple):
    """Images in order by every dimension, and the groups of one attribute among them."""

    part: Judged
    groups: Groups
    order: npt.NDArray[np.intp]
    how: str
    """How the images were chosen, in words."""
    tops: list[int]
    """The k at which skews are taken."""

    @property
    def many(self) -> int:
        """How many groups there are."""
        return len(self.groups.names)

    @property
    def desired(self) -> Array:
        """An even share for everyone."""
        return np.full(self.many, 1 / self.many)

    @property
    def names(self) -> list[str]:
        """The dimensions, and their mean."""
        return [*self.part.names(), MEAN]

    def divergences(self, codes: Indices) -> Array:
        """NDKL of each dimension and of their mean, `[shuffles, dimensions + 1]`, of codes `[shuffles, images]`."""
        return _with_mean(np.stack([ndkl(codes[:, row], self.desired) for row in self.order], axis=1))

    def held(self, codes: Indices) -> Array:
        """Each group's share of every top less that of all, mean over the dimensions: `[shuffles, tops, groups]`."""
        tops = [np.mean([_shares(codes[:, row[:k]], self.many) for row in self.order], axis=0) for k in self.tops]
        return np.stack(tops, axis=1) - _shares(codes, self.many)[:, None]


def _shares(codes: Indices, count: int) -> Array:
    """The share of every group in every row of codes."""
    return np.stack([(codes == code).mean(axis=1) for code in range(count)], axis=1)


def _with_mean(values: Array) -> Array:
    return np.concatenate([values, values.mean(axis=1, keepdims=True)], axis=1)


class Tested(NamedTuple):
    """A ranking beside rankings of shuffled people, who change groups within those of the other attributes."""

    ranking: Ranking
    strata: Strata
    expected: Array
    """NDKL of shuffled people, on average: by dimension, and of the mean."""
    part: Part
    """What the top holds of each group: `[tops, groups]`."""

    @classmethod
    def of(cls, ranking: Ranking, rng: np.random.Generator, options: MeasureOptions) -> Tested:
        groups, people, strata = ranking.groups, ranking.part.people, ranking.part.strata(ranking.groups)
        few, many = (ShuffledGroups(groups, people, rng, strata, n) for n in (options.permutations, options.shuffles))
        expected = np.concatenate([ranking.divergences(codes) for codes in few.parts()]).mean(axis=0)
        return cls(ranking, strata, expected, many.part(ranking.held, people=min(groups.sizes(people))))


def ranking_rows(
    judged: Judged, attributes: Sequence[Groups], options: MeasureOptions, tops: Sequence[int] = ()
) -> Iterator[Row]:
    """Skew@k, MaxSkew@k and NDKL of every dimension and attribute; `tops` are the user's own k.

    The mean shares of the tops are one family. NDKL has no verdict: it is not 0 without preference, and what shuffled
    people give stands beside it.
    """
    if all(len(groups.names) < 2 for groups in attributes):
        note = "one group only: nothing to rank against"
        yield Row("perception.skew", None, judged.images.height, LOGARITHM, concept=MEAN, note=note)
        return
    subset, how = balanced_subset(judged, options)
    part, rng = judged.rows(subset), options.rng()
    order = descending(part.by_dimension(part.cosine), options.rng(), released=options.compat)
    tested = []
    for groups in attributes:
        there = groups._replace(codes=groups.codes[subset])
        there = there.kept(np.unique(there.codes[there.codes >= 0]).tolist())
        if len(there.names) > 1:
            tested.append(Tested.of(Ranking(part, there, order, how, top_sizes(len(subset), tops)), rng, options))
    for each, verdicts in zip(tested, judge([each.part for each in tested]), strict=True):
        for place in range(len(each.ranking.tops)):
            yield from _skew_rows(each, place, verdicts)
    for each in tested:
        yield from _ndkl_rows(each)


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
    rng, people = options.rng(), judged.people.codes
    if judged.people.repeated and nested(people, groups.codes):
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


def _skew_rows(tested: Tested, place: int, verdicts: Verdicts) -> Iterator[Row]:
    ranking, groups, k = tested.ranking, tested.ranking.groups, tested.ranking.tops[place]
    skew, n = skew_at_k(groups.codes[ranking.order], ranking.desired, k), len(groups.codes)
    how = f"{ranking.how}; k is {100 * k / n:.0f} % of those ranked" if 3 * k > n else ranking.how
    pool = np.log(_shares(groups.codes[None], ranking.many)[0] / ranking.desired)
    pool = np.where(np.abs(pool) > EVEN, pool, 0.0)
    for column, group in enumerate(groups.names):
        for index, name in enumerate(ranking.names):
            value, note = _over_dimensions(skew[:, column], index, group, k)
            row = Row("perception.skew", value, n, LOGARITHM, groups.attribute, group, concept=name)
            row = row._replace(template=top_name(k), note=join((how, note)), landmark=float(pool[column]))
            found = comparison_at(verdicts, (place, column))
            yield from _judged_skew(tested, row, found, (place, column)) if name == MEAN else [row]
    largest = skew.max(axis=1)
    for index, name in enumerate(ranking.names):
        value = float(largest[index] if index < len(largest) else largest.mean())
        row = Row("perception.max_skew", value, n, LOGARITHM, groups.attribute, concept=name, note=how)
        yield row._replace(template=top_name(k))


def _judged_skew(tested: Tested, row: Row, found: Comparison, place: tuple[int, int]) -> Iterator[Row]:
    """A mean skew with the verdict of its group's mean share of the tops; bounds are those of the share."""
    ranking, even = tested.ranking, 1 / tested.ranking.many
    least = 0.5 / (ranking.tops[place[0]] * len(ranking.order))
    share = float(ranking.held(ranking.groups.codes[None])[0][place] + even * np.exp(row.landmark or 0.0))
    off = share - found.value
    found = found.through(lambda end: float(np.log(np.clip(end + off, least, 1.0) / even)))
    if tested.strata.variant is not None:
        yield from found.rows(row, tested.strata)
    elif row.value is None:
        yield row._replace(verdict=found.verdict)
    else:  # the mean of logarithms may lie below the logarithm of a mean: the value itself is never left out
        (only,) = found.rows(row)
        yield only._replace(low=min(found.low, row.value), high=max(found.high, row.value))


def _over_dimensions(skew: Array, index: int, group: str, k: int) -> tuple[float | None, str | None]:
    """One dimension's skew, or their mean without those that are −∞."""
    if index < len(skew):
        absent = f"no image of {group} in the top {k}: −∞"
        return (float(skew[index]), None) if np.isfinite(skew[index]) else (None, absent)
    there = skew[np.isfinite(skew)]
    left_out = len(skew) - len(there)
    note = f"{left_out} of {len(skew)} dimensions are −∞ and left out of the mean" if left_out else None
    return (float(there.mean()) if len(there) else None), note


# NDKL


def _ndkl_rows(tested: Tested) -> Iterator[Row]:
    """Divergence of every dimension and of their mean, beside that of shuffled people."""
    ranking = tested.ranking
    note = join((ranking.how, "expected: the mean of shuffles of people, which have no preference"))
    values = ranking.divergences(ranking.groups.codes[None])[0]
    for name, value, expected in zip(ranking.names, values.tolist(), tested.expected.tolist(), strict=True):
        row = Row("perception.ndkl", value, len(ranking.groups.codes), NATS, ranking.groups.attribute, concept=name)
        yield row._replace(expected=expected, note=note)
