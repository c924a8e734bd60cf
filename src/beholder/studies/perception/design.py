"""Matched sets: what each attribute does to a judgement when it alone is changed.

A set has the images of one seed that differ in one attribute. Four things are measured on sets: the average causal
effect, with an interval that resamples seeds; the published mean absolute difference, which noise alone makes more than
0; interactions, which tell whether an attribute has the same effect on every group; and each attribute's share of the
variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.core.results import Row
from beholder.metrics.clustered import Estimates
from beholder.metrics.matched import BySeed, by_seed, differences, less, seed_mean, slopes
from beholder.metrics.multiplicity import benjamini_hochberg
from beholder.metrics.variance import variance_shares
from beholder.studies.perception.bias import pairs
from beholder.studies.perception.scores import (
    BLOCK,
    GROUPED,
    INTERACTIONS,
    ORDERED,
    SEED,
    Array,
    Indices,
    Judged,
    estimate_row,
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
    effects = [
        (contrast, *matched_effect(judged.images, contrast, scores, options)) for contrast in contrasts(judged.images)
    ]
    if not effects:
        return
    p_values = _corrected([estimate for _, estimate, _ in effects])
    for (contrast, estimate, absolute), p_value in zip(effects, p_values, strict=True):
        note = f"{estimate.n[0]} matched sets; seeds resampled; p: Benjamini–Hochberg over {p_values.size} effects"
        for column, name in enumerate(judged.names()):
            row = estimate_row("causal_effect", estimate, (column,), judged.unit, n)
            row = row._replace(subset=contrast.attribute, group=contrast.first, against=contrast.second, concept=name)
            yield row._replace(p_value=float(p_value[column]), note=note)
            row = row._replace(metric="perception.absolute_difference", value=float(absolute[column]))
            upward = "mean |difference| of the same sets; noise alone makes it more than 0"
            yield row._replace(low=None, high=None, note=upward)


def _corrected(estimates: list[Estimates]) -> Array:
    """p-values corrected over all of them, one row per estimate."""
    return benjamini_hochberg(np.concatenate([each.p_value for each in estimates])).reshape(len(estimates), -1)


def matched_effect(
    images: pl.DataFrame, contrast: Contrast, scores: Array, options: MeasureOptions
) -> tuple[Estimates, Array]:
    """The mean difference over matched sets with its interval over seeds, and the mean absolute difference."""
    sets = matched_sets(images, contrast.attribute)
    both, changes = differences(scores, sets.codes, np.where(sets.codes >= 0, contrast.side, 0))
    if not len(both):
        absent = np.full(scores.shape[1], np.nan)
        return Estimates(absent, absent, absent, np.zeros(scores.shape[1], int), absent), absent
    return seed_mean(by_seed(changes, sets.seeds[both]), options.rng(), options.draws), np.abs(changes).mean(axis=0)


# Interactions


def interaction_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Differences of slopes between groups, over the attribute's whole range: does smiling help everyone equally?"""
    scores, interactions = judged.by_dimension(judged.delta), []
    for subset, (varied, grouped) in INTERACTIONS.items():
        if varied in ordered_attributes(judged.images) and grouped in design_columns(judged.images):
            for pair, estimate in interaction_estimates(judged.images, varied, grouped, scores, options):
                interactions.append((subset, pair, estimate))
    if not interactions:
        return
    p_values = _corrected([estimate for *_, estimate in interactions])
    note = f"rise over the attribute's range, first less second; p: Benjamini–Hochberg over {p_values.size} differences"
    for (subset, (first, second), estimate), p_value in zip(interactions, p_values, strict=True):
        for column, name in enumerate(judged.names()):
            row = estimate_row("interaction", estimate, (column,), judged.unit, int(estimate.n[column]))
            row = row._replace(subset=subset, group=first, against=second, concept=name)
            yield row._replace(p_value=float(p_value[column]), note=note)


def interaction_estimates(
    images: pl.DataFrame, attribute: str, grouped: str, scores: Array, options: MeasureOptions
) -> Iterator[tuple[tuple[str, str], Estimates]]:
    """How much more the attribute's whole range changes the first group's score than the second's."""
    levels = images[attribute].cast(pl.Float64).to_numpy()
    reach = float(np.nanmax(levels) - np.nanmin(levels))
    by_group = _slopes_by_group(images, scores * reach, matched_sets(images, attribute), levels, grouped)
    for first, second in pairs(sorted(by_group)):
        difference = less(by_group[first], by_group[second])
        yield (first, second), seed_mean(difference, options.rng(), options.draws)


def _slopes_by_group(images: pl.DataFrame, scores: Array, sets: Sets, levels: Array, grouped: str) -> dict[str, BySeed]:
    """Each seed's mean slope, by group."""
    labels, by_group = images[grouped].to_numpy(), {}
    for group in np.unique(labels[labels != np.array(None)]).tolist():
        codes = np.where(labels == group, sets.codes, -1)
        known, rise = slopes(scores, codes, np.nan_to_num(levels))
        if len(known):
            by_group[str(group)] = by_seed(rise, sets.seeds[known])
    return by_group


# Variance


def variance_rows(judged: Judged) -> Iterator[Row]:
    """Share of each attribute in the variance of each dimension, block by block where there are blocks."""
    blocks = judged.images[BLOCK].unique(maintain_order=True).to_list() if BLOCK in judged.images.columns else [None]
    for block in blocks:
        inside = np.ones(judged.images.height, bool) if block is None else (judged.images[BLOCK] == block).to_numpy()
        part = judged.rows(inside)
        columns = [name for name in design_columns(part.images) if not part.images[name].null_count()]
        columns = [name for name in columns if 2 * part.images[name].n_unique() < part.images.height]
        labels = {name: part.images[name].to_numpy() for name in columns}
        shares = variance_shares(part.by_dimension(part.delta), labels)
        if shares is None:
            continue
        unbalanced = None if part.designed else "variance that attributes share is counted for none of them"
        for column, name in enumerate(judged.names()):
            row = Row("perception.variance_share", float(shares.rest[column]), part.images.height, SHARE, REST)
            row = row._replace(concept=name, template=block, note="interactions and what no attribute explains")
            for k, attribute in enumerate(shares.names):
                share, p_value = float(shares.share[k, column]), float(shares.p_value[k, column])
                yield row._replace(subset=attribute, value=share, p_value=p_value, note=unbalanced)
            yield row
