"""Matched sets: what each attribute does to a judgement when it alone is changed.

A set has the images of one seed that differ in one attribute. Four things are measured on sets: the average causal
effect, with an interval over seeds; the published mean absolute difference, which noise alone makes more than
0; interactions, which tell whether an attribute has the same effect on every group; and each attribute's share of the
variance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.comparison import Groups, Part, People, compare_groups, comparison_at, group_by, judge
from beholder.comparison.family import Judged as Verdicts
from beholder.core.results import Row
from beholder.metrics.clustered import BySeed, by_seed, combined, curvatures, differences, slopes, variance_shares
from beholder.studies.perception.pairs import pairs
from beholder.studies.perception.scores import (
    BLOCK,
    GROUPED,
    INTERACTIONS,
    ORDERED,
    SEED,
    Array,
    Indices,
    Judged,
    ordered_attributes,
)
from beholder.studies.study import MeasureOptions

SHARE, STATISTIC = "share of variance", "statistic"
REST = "rest"
"""Stands for what no attribute explains."""


class Sets(NamedTuple):
    """Images that differ in one attribute alone: `codes[i]` is image i's set, −1 where the attribute is unknown."""

    attribute: str
    codes: Indices
    seeds: Indices
    """The seed of every set (−1 where the attribute is the seed itself)."""


def design_columns(images: pl.DataFrame) -> list[str]:
    """Everything that is varied: groups, ordered attributes and the seed."""
    return [name for name in (*GROUPED, *ORDERED, SEED) if name in images.columns and images[name].n_unique() > 1]


def matched_sets(images: pl.DataFrame, attribute: str) -> Sets:
    """Images that differ in this attribute alone, within a block where blocks vary different attributes."""
    others = [name for name in design_columns(images) if name != attribute]
    keys = [*others, *([BLOCK] if BLOCK in images.columns else [])]
    known = images[attribute].is_not_null()
    numbered = images.select(*keys).with_columns(known=known, row=pl.int_range(pl.len())).filter("known")
    numbered = numbered.with_columns(set=pl.struct(keys).rank("dense").cast(pl.Int64) - 1)
    codes = np.full(images.height, -1)
    codes[numbered["row"].to_numpy()] = numbered["set"].to_numpy()
    seeds = np.full(codes.max(initial=-1) + 1, -1)
    if attribute != SEED:
        _, seed_codes = np.unique(images[SEED].cast(pl.String).to_numpy(), return_inverse=True)
        seeds[codes[codes >= 0]] = seed_codes[codes >= 0]
    return Sets(attribute, codes, seeds)


# Causal effects


class Contrast(NamedTuple):
    """Two values of an attribute that are compared."""

    attribute: str
    first: str
    second: str
    side: Indices
    """1 for images with the first value, −1 for the second, 0 for others."""


def contrasts(images: pl.DataFrame) -> Iterator[Contrast]:
    """Every two groups of an attribute; the highest against the lowest level of an ordered one."""
    for attribute in [name for name in design_columns(images) if name != SEED]:
        labels = images[attribute]
        if attribute in ORDERED:
            low, high = float(labels.min()), float(labels.max())  # type: ignore[arg-type]
            chosen = [(high, low)]
        else:
            chosen = pairs(sorted(labels.drop_nulls().unique()))  # type: ignore[assignment]
        for both in chosen:
            first, second = ((labels == value).fill_null(False).to_numpy() for value in both)
            one, other = (f"{value:g}" if attribute in ORDERED else str(value) for value in both)
            yield Contrast(attribute, one, other, first.astype(int) - second.astype(int))


def effect_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Average causal effect of each contrast on each dimension, and the mean absolute difference."""
    scores, n = judged.by_dimension(judged.delta), judged.images[SEED].n_unique()
    found = ((contrast, matched_effect(judged.images, contrast, scores)) for contrast in contrasts(judged.images))
    effects = [(contrast, *effect) for contrast, effect in found if effect is not None]
    verdicts = judged_by_seed([changes for _, changes, _ in effects], options)
    for (contrast, changes, absolute), told in zip(effects, verdicts, strict=True):
        note = f"{changes.sets} matched sets; interval and p hold for all {len(effects) * scores.shape[1]} at once"
        for column, name in enumerate(judged.names()):
            row = Row("perception.causal_effect", None, n, judged.unit, contrast.attribute, contrast.first, note=note)
            row = row._replace(against=contrast.second, concept=name)
            yield seed_row(row, changes, told, column)
            upward = "mean |difference| of the same sets; noise alone makes it more than 0"
            yield row._replace(metric="perception.absolute_difference", value=float(absolute[column]), note=upward)


def judged_by_seed(parts: Sequence[BySeed], options: MeasureOptions) -> list[Verdicts]:
    """Differences within seeds, judged as one family."""
    rng = options.rng()
    return judge([paired(part.values, rng, options) for part in parts])


def paired(differences: Array, rng: np.random.Generator, options: MeasureOptions) -> Part:
    """Differences `[n_seeds, n_columns]`: each seed is compared with itself, as if either picture were the other."""
    n = len(differences)
    sides, people = Groups("", ["with", "without"], np.repeat([0, 1], n)), People(np.tile(np.arange(n), 2))
    halves = np.concatenate([differences, -differences]) / 2
    return compare_groups(halves, sides, people, rng, shuffles=options.shuffles)


def seed_row(row: Row, part: BySeed, verdicts: Verdicts, column: int) -> Row:
    """The mean over seeds in a row, with its verdict."""
    value = float(part.values[:, column].mean()) if len(part.seeds) else np.nan
    return comparison_at(verdicts, (0, column)).rows(row._replace(value=value))[0]


def matched_effect(images: pl.DataFrame, contrast: Contrast, scores: Array) -> tuple[BySeed, Array] | None:
    """The differences of matched sets by seed, and their mean absolute difference; None without a matched set."""
    sets = matched_sets(images, contrast.attribute)
    both, changes = differences(scores, sets.codes, np.where(sets.codes >= 0, contrast.side, 0))
    if not len(both):
        return None
    return by_seed(changes, sets.seeds[both]), np.abs(changes).mean(axis=0)


# Interactions


def interaction_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Does smiling help everyone equally? Each group's rise over the attribute's whole range, and their differences."""
    scores, interactions = judged.by_dimension(judged.delta), []
    for subset, (varied, grouped) in INTERACTIONS.items():
        if varied in ordered_attributes(judged.images) and grouped in design_columns(judged.images):
            rises = rises_by_group(judged.images, varied, group_by(judged.images, (grouped,)), scores)
            interactions += [(subset, both, slope) for both, slope in _slope_differences(rises)]
            for group, rise in rises.items():
                for name, value in zip(judged.names(), rise.values.mean(axis=0).tolist(), strict=True):
                    row = Row("perception.slope", value, rise.sets, judged.unit, subset, group, concept=name)
                    yield row._replace(note="rise of a straight line over the attribute's range")
    count = len(interactions) * len(judged.dimensions)
    note = f"rise over the attribute's range, first less second; interval and p hold for all {count} at once"
    verdicts = judged_by_seed([slope for *_, slope in interactions], options)
    for (subset, both, slope), told in zip(interactions, verdicts, strict=True):
        for column, name in enumerate(judged.names()):
            row = Row("perception.interaction", None, slope.sets, judged.unit, subset, *both, name, note=note)
            yield seed_row(row, slope, told, column)


def _slope_differences(rises: dict[str, BySeed]) -> Iterator[tuple[tuple[str, str], BySeed]]:
    """How much more the attribute's whole range changes the first group's score than the second's."""
    for first, second in pairs(list(rises)):
        difference = combined([rises[first], rises[second]], np.array([1.0, -1.0]))
        if len(difference.seeds):
            yield (first, second), difference


def rises_by_group(images: pl.DataFrame, attribute: str, groups: Groups, scores: Array) -> dict[str, BySeed]:
    """Each seed's mean slope times the attribute's range, by group."""
    levels = images[attribute].cast(pl.Float64).to_numpy()
    reach = float(np.nanmax(levels) - np.nanmin(levels))
    return _by_group(images, attribute, groups, partial(slopes, scores * reach, levels=np.nan_to_num(levels)))


def bends_by_group(images: pl.DataFrame, attribute: str, groups: Groups, scores: Array) -> dict[str, BySeed]:
    """By group: how far the two ends of each seed's second-degree curve lie above its middle."""
    levels = images[attribute].cast(pl.Float64).to_numpy()
    half = float(np.nanmax(levels) - np.nanmin(levels)) / 2
    return _by_group(images, attribute, groups, partial(curvatures, scores * half**2, levels=np.nan_to_num(levels)))


def _by_group(
    images: pl.DataFrame, attribute: str, groups: Groups, fit: Callable[..., tuple[Indices, Array]]
) -> dict[str, BySeed]:
    sets, fitted = matched_sets(images, attribute), {}
    for group in groups.names:
        known, numbers = fit(sets=np.where(groups.mask(group), sets.codes, -1))
        if len(known):
            fitted[group] = by_seed(numbers, sets.seeds[known])
    return fitted


# Variance


def variance_rows(judged: Judged) -> Iterator[Row]:
    """Share of each attribute in the variance of each dimension, block by block where there are blocks."""
    blocks = judged.images[BLOCK].unique(maintain_order=True).to_list() if BLOCK in judged.images.columns else [None]
    for block in blocks:
        inside = np.ones(judged.images.height, bool) if block is None else (judged.images[BLOCK] == block).to_numpy()
        for row in _block_shares(judged.rows(inside)):
            yield row._replace(template=block)


def _block_shares(part: Judged) -> Iterator[Row]:
    """The shares in one block: they describe."""
    columns = [name for name in design_columns(part.images) if not part.images[name].null_count()]
    columns = [name for name in columns if 2 * part.images[name].n_unique() < part.images.height]
    shares = variance_shares(part.by_dimension(part.delta), {name: part.images[name].to_numpy() for name in columns})
    if shares is None:
        return
    unbalanced = None if part.designed else "variance that attributes share is counted for none of them"
    for column, name in enumerate(part.names()):
        row = Row("perception.variance_share", float(shares.rest[column]), part.images.height, SHARE, REST)
        row = row._replace(concept=name, note="interactions and what no attribute explains")
        for k, attribute in enumerate(shares.names):
            yield row._replace(subset=attribute, value=float(shares.share[k, column]), note=unbalanced)
        yield row
