"""Impact ratios: how often a group is selected for each time that the most selected group is.

Selected is who scores above the median person, as New York City's Local Law 144 counts scores. All ratios of all
columns and attributes are one family; each has its bounds from the test of "the rates are alike".
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from beholder.comparison.family import Comparison, Judged, Part, comparison_at, judge
from beholder.comparison.groups import Groups, People
from beholder.comparison.means import compare_groups, levels_of, ratio_bounds
from beholder.core.types import Array, Codes

FOUR_FIFTHS = 0.8
IMPACT_RATIO, SELECTION_RATE = "impact_ratio", "selection_rate"  # how metrics of them end
MOST_SELECTED = "the most selected"  # what a group is compared with, whichever group that is


class Impact(NamedTuple):
    """How often one group is selected; `ratio` is None for the most selected group, and where nobody is selected."""

    groups: Groups
    group: str
    column: int
    rate: float
    people: int
    most: str
    ratio: Comparison | None


def selected(values: Array, people: People) -> Array:
    """1 for pictures of people above the median person, else 0, NaN without a score; `[n_images, n_columns]`."""
    # Where nobody lies above it (more than half have the highest score), those at the median are selected.
    marks = np.full(values.shape, np.nan)
    for column, scores in enumerate(values.T):
        there = ~np.isnan(scores)
        who, codes = np.unique(people.codes[there], return_inverse=True)
        if len(who):
            means = np.bincount(codes, weights=scores[there]) / np.bincount(codes)
            means = np.round(means, 12)  # equal scores may differ by rounding once they are averaged
            above = means > np.median(means)
            marks[there, column] = (above if above.any() else means >= np.median(means))[codes]
    return marks


def impacts(
    values: Array, every: Sequence[Groups], people: People, rng: np.random.Generator, *, shuffles: int
) -> Iterator[Impact]:
    """Every group of every attribute in every column, judged together."""
    marks = selected(values, people)
    made = partial(compare_groups, marks, people=people, rng=rng, shuffles=shuffles, bounds=(0.0, 1.0))
    parts = [made(groups=groups, contrasts=groups.pair_weights()) for groups in every]
    for groups, part, judged in zip(every, parts, judge(parts), strict=True):
        for column in range(values.shape[1]):
            yield from _of_groups(marks[:, column], groups, people, part, judged, column)


def _of_groups(
    marks: Array, groups: Groups, people: People, part: Part, judged: Judged, column: int
) -> Iterator[Impact]:
    counts = [_rate(marks[groups.mask(name)], people.codes[groups.mask(name)]) for name in groups.names]
    rates = [rate for rate, _ in counts]
    if np.isnan(rates).any():
        return
    best = int(np.argmax(rates))
    mine = judged._replace(margin=judged.margin[:, [column]], found=judged.found[:, [column]])
    for place, (name, (rate, count)) in enumerate(zip(groups.names, counts, strict=True)):
        one = None
        if place != best and rates[best] > 0:
            pair = groups.pairs().index((min(place, best), max(place, best)))
            levels = levels_of(marks, groups.kept([place, best]), people, bounds=(0.0, 1.0))
            low, high = ratio_bounds(levels, mine, part._replace(error=part.error[:, [column]]), pair)
            one = comparison_at(judged, (pair, column), name, MOST_SELECTED)
            one = one._replace(value=rate / rates[best], low=float(low[0]), high=float(high[0]))
        yield Impact(groups, name, column, rate, count, groups.names[best], one)


def _rate(marks: Array, codes: Codes) -> tuple[float, int]:
    """The share of selected people, and how many people there are."""
    there = ~np.isnan(marks)
    who, first = np.unique(codes[there], return_index=True)
    return (float(marks[there][first].mean()) if len(who) else np.nan), len(who)
