"""The gender ratio b: the right occupation's probability for women over that for men; by pool, branch and options.

b belongs to the options that are offered together, so it is also given with each wrong option left out. Where the right
word depends on the gender ("actress", "actor"), b is also given for either word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.results import Row
from beholder.metrics.association import correct_share, half_precision_mean
from beholder.metrics.bootstrap import FEWEST, Resampler
from beholder.metrics.equivalence import ratio_equivalence, verdict
from beholder.metrics.intervals import Estimate, mean_estimate, ratio_estimate, studentised_interval, studentised_tails
from beholder.metrics.multiplicity import holm
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.public_figures.levels import GROUPS, Array, Level, read_level, scored_branches
from beholder.studies.public_figures.phrases import WORD_PAIRS, either_word, word_pair
from beholder.studies.rows import NO_SPREAD, join, mean_row, people_shown
from beholder.studies.study import Matrices, MeasureOptions

RATIO = "ratio"
Pools = dict[str, tuple[str, ...]]
"""The branches of each pool."""


def ratio_rows(prefix: str, pools: Pools, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Mean probability of every occupation over women and over men, and the ratio for the correct one."""
    pooled: list[Ratio] = []
    either: dict[str, Ratio] = {}
    for pool, level, groups in _levels(pools, matrices, options):
        for group in groups:
            yield from _occupation_rows(prefix, pool, level, group, options)
        if len(groups) == len(GROUPS):
            pooled.append(_ratio(pool, groups, correct_share(level.shares, level.correct), options))
            words = _either_word(level)
            if words is not None:
                either[pool] = _ratio(pool, groups, words, options)
    yield from _tested(f"{prefix}.bias_ratio", pooled, options, "pools")
    if either:
        claimed = [either.get(each.subset, each) for each in pooled]
        rows = _tested(f"{prefix}.either_word_ratio", claimed, options, "pools")
        yield from (row for row in rows if row.subset in either)
    if options.delta is not None:
        yield from _equivalence_rows(prefix, pooled, options, options.delta)


def other_ratio_rows(prefix: str, pools: Pools, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """The ratio of every branch of a pool, and of every pool with each wrong option left out."""
    scored = scored_branches(matrices)
    by_branch: list[Ratio] = []
    for pool, branches in pools.items():
        there = [scored[branch] for branch in branches if branch in scored]
        parts = [ratio for matrix in there if (ratio := _of_branch(matrix, pool, options)) is not None]
        by_branch += parts if len(parts) > 1 else []
    yield from _tested(f"{prefix}.branch_ratio", by_branch, options, "branches")
    for pool, level, groups in _levels(pools, matrices, options):
        if len(groups) == len(GROUPS):
            right = correct_share(level.shares, level.correct)
            for option, shares in _without_each(level, right):
                yield _untested(f"{prefix}.ratio_without", _ratio(pool, groups, shares, options, option), options)


def _levels(pools: Pools, matrices: Matrices, options: MeasureOptions) -> Iterator[tuple[str, Level, list[Group]]]:
    """Every pool with its occupations, and with women and men as far as they are there."""
    scored = scored_branches(matrices)
    for pool, branches in pools.items():
        level = read_level([scored[branch] for branch in branches if branch in scored], "occupation")
        if level.concepts:
            rng = options.rng()  # one for both groups: with equal seeds the draws of women and men would be linked
            yield pool, level, [group for name in GROUPS if (group := _of_group(level, name, options, rng))]


def _of_branch(matrix: ScoreMatrix, pool: str, options: MeasureOptions) -> Ratio | None:
    level, rng = read_level([matrix], "occupation"), options.rng()
    groups = [group for name in GROUPS if (group := _of_group(level, name, options, rng))] if level.concepts else []
    if len(groups) < len(GROUPS):
        return None
    return _ratio(matrix.part, groups, correct_share(level.shares, level.correct), options, pool)


# Women and men


class Group(NamedTuple):
    """The images of one group, and the draws of its people."""

    name: str
    mask: npt.NDArray[np.bool_]
    resampler: Resampler


def _of_group(level: Level, group: str, options: MeasureOptions, rng: np.random.Generator) -> Group | None:
    """Women and men are resampled separately: how many there are is fixed by the data set."""
    mask = (level.images["gender"] == group).fill_null(False).to_numpy()
    if not mask.any():
        return None
    return Group(group, mask, Resampler(people_shown(level.images.filter(mask)), rng, options.draws))


def _occupation_rows(prefix: str, subset: str, level: Level, group: Group, options: MeasureOptions) -> Iterator[Row]:
    metric = f"{prefix}.occupation_probability"
    for column, concept in enumerate(level.concepts):
        row = mean_row(metric, level.shares[group.mask, column], group.resampler, half=options.compat)
        note = join((row.note, level.left_out))
        yield row._replace(subset=subset, group=group.name, concept=concept, note=note)
    for pair in WORD_PAIRS:
        if set(pair) <= set(level.concepts):
            both = level.shares[:, [level.concepts.index(word) for word in pair]].sum(axis=1)
            row = mean_row(f"{prefix}.either_word_probability", both[group.mask], group.resampler)
            yield row._replace(subset=subset, group=group.name, concept=either_word(pair[0]))


def _either_word(level: Level) -> Array | None:
    """The share on both words of the right pair; None where the right word does not depend on the gender."""
    right = [concept for column, concept in enumerate(level.concepts) if level.correct[:, column].any()]
    pair = word_pair(right[0]) if len(right) == 2 else None
    if pair is None or set(pair) != set(right):
        return None
    return np.asarray(level.shares[:, [level.concepts.index(word) for word in pair]].sum(axis=1))


def _without_each(level: Level, right: Array) -> Iterator[tuple[str, Array]]:
    """The right share with each option left out that is wrong for everyone."""
    for column, concept in enumerate(level.concepts):
        if not level.correct[:, column].any() and len(level.concepts) > 2:
            with np.errstate(divide="ignore", invalid="ignore"):
                yield concept, np.asarray(right / (1 - level.shares[:, column]))


# Ratios


class Ratio(NamedTuple):
    """Women over men, in one pool or branch."""

    subset: str
    counts: tuple[int, int]
    """Images of women and of men."""
    few: bool
    """Whether a group is too small for an interval."""
    estimate: Estimate
    value: float
    concept: str | None = None
    """The option that was left out, or the pool of a branch."""


def _ratio(
    subset: str, groups: Sequence[Group], shares: Array, options: MeasureOptions, concept: str | None = None
) -> Ratio:
    parts = [shares[group.mask] for group in groups]
    mean = half_precision_mean if options.compat and concept is None else np.nanmean
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(np.float64(mean(parts[0])) / mean(parts[1]))
    return Ratio(
        subset,
        (len(parts[0]), len(parts[1])),
        min(group.resampler.n_clusters for group in groups) < FEWEST,
        ratio_estimate(*(mean_estimate(part, group.resampler) for part, group in zip(parts, groups, strict=True))),
        value,
        concept,
    )


def _untested(metric: str, ratio: Ratio, options: MeasureOptions) -> Row:
    """The ratio with its interval: studentised on the log scale."""
    low, high = (np.nan, np.nan) if ratio.few else studentised_interval(ratio.estimate, scale="log")
    women, men = ratio.counts
    few = f"fewer than {FEWEST} in a group: no interval" if ratio.few else NO_SPREAD if np.isnan(low) else None
    note = join((f"{women} women, {men} men; 1 means alike, below 1 women get less", few))
    row = Row(metric, ratio.value, women + men, RATIO, subset=ratio.subset, concept=ratio.concept, note=note)
    return row._replace(low=low, high=high)


def _tested(metric: str, ratios: Sequence[Ratio], options: MeasureOptions, kind: str) -> Iterator[Row]:
    """The ratios with p-values, corrected over all of them."""
    raw = _raw_p(ratios)
    tested = int((~np.isnan(raw)).sum())
    family = f"p: b is 1, Holm over {tested} {kind}" if tested > 1 else "p: b is 1"
    for ratio, alone, p_value in zip(ratios, raw, holm(raw) if len(raw) else [], strict=True):
        row = _untested(metric, ratio, options)
        at_most = True if alone < 3 / options.draws else None  # no draw lies beyond 1: the smallest p there is
        note = row.note if np.isnan(alone) else join((row.note, family))
        p_value = None if ratio.few else float(p_value)
        yield row._replace(p_value=p_value, p_at_most=at_most, note=note)


def _raw_p(ratios: Sequence[Ratio]) -> Array:
    return np.array([np.nan if r.few else studentised_tails(r.estimate, 1.0, scale="log").two_sided for r in ratios])


def _equivalence_rows(prefix: str, ratios: Sequence[Ratio], options: MeasureOptions, delta: float) -> Iterator[Row]:
    raw = _raw_p(ratios)
    for ratio, p_difference in zip(ratios, holm(raw) if len(raw) else [], strict=True):
        if not np.isfinite(_untested("", ratio, options).low or np.nan):
            continue
        test = ratio_equivalence(ratio.estimate, delta)
        p_value = float(test.p_value)
        answer = verdict(float(p_difference), p_value)
        note = f"{answer}; δ = {delta:g}: b between {1 / (1 + delta):.3g} and {1 + delta:.3g}"
        row = Row(f"{prefix}.equivalence", float(test.bound), sum(ratio.counts), RATIO, subset=ratio.subset)
        yield row._replace(p_value=p_value, equivalence=answer, delta=delta, note=note)
