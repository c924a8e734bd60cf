"""The gender ratio b: the right occupation's probability for women over that for men; by pool, branch and options.

b belongs to the options that are offered together, so it is also given with each wrong option left out. Where the right
word depends on the gender ("actress", "actor"), b is also given for either word. Ratios of pools, of branches and of
either word are one family.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from beholder.comparison import (
    FEWEST,
    Comparison,
    Groups,
    Part,
    Strata,
    compare_groups,
    comparison_at,
    judge,
    levels_of,
    ratio_bounds,
)
from beholder.comparison.family import Judged
from beholder.comparison.means import OPEN
from beholder.core.results import Row
from beholder.metrics.association import correct_share, half_precision_mean
from beholder.metrics.group_tests import ratio_equivalence, verdict
from beholder.metrics.intervals import Resampler, mean_estimate, ratio_estimate
from beholder.studies.public_figures.levels import GROUPS, Array, Level, Pool, Pools, scored_pools
from beholder.studies.public_figures.phrases import WORD_PAIRS, either_word, word_pair
from beholder.studies.rows import join, mean_row
from beholder.studies.study import Matrices, MeasureOptions

RATIO = "ratio"


def ratio_rows(prefix: str, pools: Pools, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Mean probability of every occupation over women and over men, and the ratio for the correct one."""
    rng, claims, described = options.rng(), [], []
    for pool in scored_pools(pools, matrices, options):
        yield from _occupation_rows(prefix, pool, options)
        if pool.both:
            claims += list(_claims(prefix, pool, rng, options))
            described += list(_described(prefix, pool, rng, options))
    plain = {}
    for ratio, judged in zip(described, judge([each.part for each in described]), strict=True):
        compared = ratio.compared(judged)
        row = ratio.row._replace(low=compared.low, high=compared.high)
        plain[row.metric, row.subset] = row
        if row.concept is not None:
            yield row
    for ratio, judged in zip(claims, judge([each.part for each in claims]), strict=True):
        compared = ratio.compared(judged)
        yield from compared.rows(plain.get((ratio.row.metric, ratio.row.subset), ratio.row), ratio.strata)
        if options.delta is not None and ratio.row.metric.endswith(".bias_ratio") and np.isfinite(compared.low):
            yield _equivalence(f"{prefix}.equivalence", ratio, compared.p_value, options)


# Women and men


def _occupation_rows(prefix: str, pool: Pool, options: MeasureOptions) -> Iterator[Row]:
    level, rng = pool.level, options.rng()  # one for both: with equal seeds draws of women and men would be linked
    for place, group in enumerate(GROUPS):
        mask = pool.groups.mask(place)
        if not mask.any():
            continue
        resampler = Resampler(pool.people.codes[mask], rng, options.draws)
        for column, concept in enumerate(level.concepts):
            metric, shares = f"{prefix}.occupation_probability", level.shares[mask, column]
            row = mean_row(metric, shares, resampler, half=options.compat)
            yield row._replace(subset=pool.name, group=group, concept=concept, note=join((row.note, level.left_out)))
        for pair in WORD_PAIRS:
            if set(pair) <= set(level.concepts):
                row = mean_row(f"{prefix}.either_word_probability", _of_words(level, pair)[mask], resampler)
                yield row._replace(subset=pool.name, group=group, concept=either_word(pair[0]))


def _of_words(level: Level, words: Sequence[str]) -> Array:
    return np.asarray(level.shares[:, [level.concepts.index(word) for word in words]].sum(axis=1))


def _either_word(level: Level) -> Array | None:
    """The share on both words of the right pair; None where the right word does not depend on the gender."""
    right = [concept for column, concept in enumerate(level.concepts) if level.correct[:, column].any()]
    pair = word_pair(right[0]) if len(right) == 2 else None
    return _of_words(level, pair) if pair is not None and set(pair) == set(right) else None


def _without_each(level: Level) -> Iterator[tuple[str, Array]]:
    """The right share with each option left out that is wrong for everyone."""
    right = correct_share(level.shares, level.correct)
    for column, concept in enumerate(level.concepts):
        if not level.correct[:, column].any() and len(level.concepts) > 2:
            with np.errstate(divide="ignore", invalid="ignore"):
                yield concept, np.asarray(right / (1 - level.shares[:, column]))


# Ratios


class Ratio(NamedTuple):
    """Women over men in one pool or branch: the published row, and what judges it."""

    row: Row
    pool: Pool
    groups: Groups
    strata: Strata | None
    shares: Array
    part: Part

    def compared(self, judged: Judged) -> Comparison:
        """The ratio with bounds from the test of "women less b times men is 0"."""
        comparison = comparison_at(judged, (0, 0))
        if not np.isfinite(judged.margin[0, 0]):
            return comparison._replace(value=np.nan, low=np.nan, high=np.nan)
        levels = levels_of(self.shares, self.groups, self.pool.people, self.strata, (0.0, 1.0))
        low, high = ratio_bounds(levels, judged, self.part)
        value = _over(float(levels.first[0]), float(levels.second[0]))
        return comparison._replace(value=value, low=float(low[0]), high=float(high[0]))


def _over(women: float, men: float) -> float:
    """The ratio; without end where men have nothing, and unknown where nobody has anything."""
    return float(women / men) if men else OPEN if women else np.nan


def _claims(prefix: str, pool: Pool, rng: np.random.Generator, options: MeasureOptions) -> Iterator[Ratio]:
    """b of the pool within its branches, for either word, and of every branch."""
    right, words = correct_share(pool.level.shares, pool.level.correct), _either_word(pool.level)
    yield _ratio(f"{prefix}.bias_ratio", pool, right, rng, options, strata=pool.strata)
    if words is not None:
        yield _ratio(f"{prefix}.either_word_ratio", pool, words, rng, options, strata=pool.strata)
    for branch, groups in pool.branches():
        if groups.mask(0).any() and groups.mask(1).any():
            ratio = _ratio(f"{prefix}.branch_ratio", pool, right, rng, options, groups=groups)
            yield ratio._replace(row=ratio.row._replace(subset=branch, concept=pool.name))


def _described(prefix: str, pool: Pool, rng: np.random.Generator, options: MeasureOptions) -> Iterator[Ratio]:
    """Ratios of which nothing is claimed: b of a pool as if it had no branches, and without each wrong option."""
    if pool.strata.variant:
        right = correct_share(pool.level.shares, pool.level.correct)
        yield _ratio(f"{prefix}.bias_ratio", pool, right, rng, options)
    for option, shares in _without_each(pool.level):
        ratio = _ratio(f"{prefix}.ratio_without", pool, shares, rng, options)
        yield ratio._replace(row=ratio.row._replace(concept=option))


def _ratio(
    metric: str,
    pool: Pool,
    shares: Array,
    rng: np.random.Generator,
    options: MeasureOptions,
    *,
    groups: Groups | None = None,
    strata: Strata | None = None,
) -> Ratio:
    groups = pool.groups if groups is None else groups
    half = options.compat and not metric.endswith(("branch_ratio", "ratio_without"))
    sides = [side[~np.isnan(side)] for side in _sides(shares, groups)]
    women, men = (half_precision_mean(side) if half else side.mean() if side.size else np.nan for side in sides)
    count = int((groups.codes >= 0).sum())
    few = f"fewer than {FEWEST} people in a group" if min(groups.sizes(pool.people)) < FEWEST else None
    row = Row(metric, _over(women, men), count, RATIO, subset=pool.name, note=few)
    part = compare_groups(shares, groups, pool.people, rng, strata=strata, shuffles=options.shuffles, bounds=(0.0, 1.0))
    return Ratio(row, pool, groups, strata, shares, part)


def _sides(shares: Array, groups: Groups) -> list[Array]:
    return [shares[groups.mask(group)] for group in (0, 1)]


def _equivalence(metric: str, ratio: Ratio, p_difference: float, options: MeasureOptions) -> Row:
    """Whether b is shown to lie within a factor of 1 + δ: from draws of people, women and men apart."""
    delta, rng, people = options.delta or 0.0, options.rng(), ratio.pool.people
    names = ratio.pool.level.images[people.column] if people.column else np.zeros(len(people.codes))
    who = np.array([f"{name}\0{code}" for name, code in zip(names, people.codes, strict=True)])
    estimate = ratio_estimate(
        *(
            mean_estimate(shares, Resampler(who[ratio.groups.mask(group)], rng, options.draws))
            for group, shares in enumerate(_sides(ratio.shares, ratio.groups))
        )
    )
    test = ratio_equivalence(estimate, delta)
    p_value = float(test.p_value)
    answer = verdict(p_difference, p_value)
    note = f"{answer}; δ = {delta:g}: b between {1 / (1 + delta):.3g} and {1 + delta:.3g}"
    row = Row(metric, float(test.bound), ratio.row.n, RATIO, subset=ratio.row.subset)
    return row._replace(p_value=p_value, equivalence=answer, delta=delta, note=note)
