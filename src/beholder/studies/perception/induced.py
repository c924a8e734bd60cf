"""Induced variation, the published measure: how far apart two images are that differ in one attribute alone.

These are absolute differences of pairs drawn at random. Noise alone makes them more than 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST, Resampler, exact_proportion_interval, interval_over
from beholder.metrics.multiplicity import holm
from beholder.studies.perception.bias import AS_RELEASED
from beholder.studies.perception.design import STATISTIC, design_columns, matched_sets
from beholder.studies.perception.scores import MEAN, Array, Indices, Judged
from beholder.studies.study import MeasureOptions

PAIRS = 1000
"""Pairs drawn for each attribute, as in the study."""
FAR = {"age": 1.1, "smiling": 1.1}
"""The two of a pair differ by more than this in these attributes."""
EVEN_CHANCE = 0.5
BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


class Drawn(NamedTuple):
    """Pairs of images: how far apart they are in each dimension, and the seeds of both."""

    apart: Array
    seeds: Indices


def induced_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """|Δ₁ − Δ₂| of pairs that differ in one attribute alone, for each attribute, and tests between attributes."""
    scores, drawn = judged.by_dimension(judged.delta), dict[str, Drawn]()
    for attribute in design_columns(judged.images):
        first, second = draw_pairs(judged.images, attribute, options.rng())
        if len(first):
            seeds = judged.clusters[np.stack([first, second], axis=1)]
            drawn[attribute] = Drawn(np.abs(scores[first] - scores[second]), seeds)
            yield from _box_rows(drawn[attribute].apart, judged, attribute, seeds[:, 0], options)
    yield from _rank_sum_rows(drawn, options)


def draw_pairs(
    images: pl.DataFrame, attribute: str, rng: np.random.Generator, count: int = PAIRS
) -> tuple[Indices, Indices]:
    """Pairs of images of one set whose values of the attribute differ (age and smiling: by more than 1.1)."""
    codes = matched_sets(images, attribute).codes
    rows = np.flatnonzero(codes >= 0)
    rows = rows[np.argsort(codes[rows], kind="stable")]
    _, starts, sizes = np.unique(codes[rows], return_index=True, return_counts=True)
    values = images[attribute].to_numpy()
    if not images[attribute].dtype.is_numeric():
        values = np.unique(values, return_inverse=True)[1]
    far, pairs = FAR.get(attribute, 0.0), (np.empty(0, int), np.empty(0, int))
    for _ in range(50):  # draws that do not differ enough are drawn again; sets without a pair never give one
        pick = rng.integers(len(starts), size=2 * count)
        first, second = (rows[starts[pick] + (rng.random(len(pick)) * sizes[pick]).astype(int)] for _ in range(2))
        good = np.abs(values[first].astype(float) - values[second].astype(float)) > far
        pairs = (np.append(pairs[0], first[good]), np.append(pairs[1], second[good]))
        if len(pairs[0]) >= count:
            break
    return pairs[0][:count], pairs[1][:count]


def _box_rows(
    absolute: Array, judged: Judged, attribute: str, seeds: npt.NDArray[Any], options: MeasureOptions
) -> Iterator[Row]:
    """The median of every dimension and of all together, and the box around it; pairs of a seed are drawn together."""
    resampler = Resampler(seeds, options.rng(), min(options.draws, 200))
    alike = np.zeros(len(seeds), dtype=int)
    for column, name in enumerate([*judged.names(), MEAN]):
        values = absolute[:, [column]] if column < absolute.shape[1] else absolute
        low, high = interval_over(_median_draws(values, resampler), seeds, alike)
        row = Row("perception.induced_variation", float(np.median(values)), len(absolute), judged.unit, attribute)
        row = row._replace(concept=name)
        yield row._replace(low=low, high=high, note="median over pairs that differ in this attribute alone")
        for share in BOX:
            value = float(np.quantile(values, share))
            yield row._replace(metric="perception.induced_variation_quantile", value=value, template=f"{share:g}")


def _median_draws(values: Array, resampler: Resampler) -> Array:
    """Medians of resampled pairs; a pair keeps its dimensions together."""
    flat, columns = values.ravel(), values.shape[1]
    order = np.argsort(flat)
    medians = []
    for weights in resampler.weights():
        total = np.cumsum(np.repeat(weights, columns, axis=1)[:, order], axis=1)
        medians.append(flat[order][(total < total[:, [-1]] / 2).sum(axis=1)])
    return np.concatenate(medians)


def _rank_sum_rows(drawn: dict[str, Drawn], options: MeasureOptions) -> Iterator[Row]:
    """Tests between attributes over all pairs and dimensions, as published; Holm over the tests.

    The published rank-sum test takes all 8,000 values for independent. Pairs of one seed are not, nor are a pair's
    dimensions: the p here lets seeds vary.
    """
    compared = list(combinations(drawn, 2))
    tests = [
        _released(drawn[a], drawn[b]) if options.compat else chance_of_more(drawn[a], drawn[b]) for a, b in compared
    ]
    adjusted = holm(np.array([test.p_value for test in tests])) if tests else np.empty(0)
    how = "rank-sum over all values as if independent" if options.compat else "over seeds"
    note = f"chance that a pair of the first differs by more than one of the second; 0.5: the same; p: {how}, Holm"
    for (first, second), test, p_value in zip(compared, tests, adjusted, strict=True):
        n = drawn[first].apart.size + drawn[second].apart.size
        row = Row("perception.induced_variation_test", test.value, n, STATISTIC, group=first, against=second, note=note)
        row = row._replace(low=test.low, high=test.high, p_value=float(p_value), landmark=EVEN_CHANCE)
        yield row._replace(variant=AS_RELEASED) if options.compat else row


class Chance(NamedTuple):
    """The chance that one value is above another, with its interval and the p of one half."""

    value: float
    low: float | None
    high: float | None
    p_value: float


def _released(first: Drawn, second: Drawn) -> Chance:
    a, b = first.apart.ravel(), second.apart.ravel()
    test = stats.mannwhitneyu(a, b)
    return Chance(float(test.statistic) / (a.size * b.size), None, None, float(test.pvalue))


def chance_of_more(first: Drawn, second: Drawn) -> Chance:
    """How often a value of the first is above one of the second; seeds vary, and a pair may have two of them."""
    a, b = (np.sort(each.apart.ravel()) for each in (first, second))
    above = _mean_rank(first.apart, b)
    below = _mean_rank(second.apart, a)
    value = float(above.mean())
    # How far each pair pulls the chance; what shares a seed is summed before it is squared.
    pulls = np.concatenate([(above.mean(axis=1) - value) / len(above), (1 - value - below.mean(axis=1)) / len(below)])
    error, people = _dyadic_error(pulls, np.concatenate([first.seeds, second.seeds]))
    if people < FEWEST:
        return Chance(value, None, None, np.nan)
    if not error > 0:  # everyone agrees: at one half that says nothing, else as much as so many people can
        everyone = exact_proportion_interval(int(value > EVEN_CHANCE) * people, people)
        return Chance(value, None, None, np.nan) if 0 < value < 1 else Chance(value, *everyone, 2 * 0.5**people)
    margin = float(stats.t.ppf(0.975, people - 1)) * error
    p_value = float(2 * stats.t.sf(abs(value - EVEN_CHANCE) / error, people - 1))
    return Chance(value, value - margin, value + margin, p_value)


def _mean_rank(values: Array, against: Array) -> Array:
    """For each value, the share of `against` (sorted) below it; equal ones count half."""
    below, up_to = (np.searchsorted(against, values, side=side) for side in ("left", "right"))
    return np.asarray((below + up_to) / (2 * len(against)))


def _dyadic_error(pulls: Array, seeds: Indices) -> tuple[float, int]:
    """The standard error of a sum of pulls, where pulls that share a seed vary together; and the number of seeds."""
    _, codes = np.unique(seeds, return_inverse=True)
    codes = np.sort(codes.reshape(seeds.shape), axis=1)
    people = int(codes.max()) + 1
    twice = codes[:, 0] != codes[:, 1]
    by_seed = np.bincount(codes[:, 0], pulls, people) + np.bincount(codes[twice, 1], pulls[twice], people)
    # Pairs of the same two seeds were counted with each of them.
    _, both = np.unique(codes[twice], axis=0, return_inverse=True)
    shared = np.bincount(both.ravel(), pulls[twice]) if twice.any() else np.zeros(1)
    variance = (by_seed**2).sum() - (shared**2).sum()
    return float(np.sqrt(max(variance, 0.0) * people / max(people - 1, 1))), people
