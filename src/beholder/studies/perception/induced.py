"""Induced variation, the published measure: how far apart two images are that differ in one attribute alone.

These are absolute differences of pairs drawn at random. Noise alone makes them more than 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import polars as pl
from scipy import stats

from beholder.core.results import Row
from beholder.metrics.group_tests import holm
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


def induced_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """|Δ₁ − Δ₂| of pairs that differ in one attribute alone, for each attribute, and the attributes beside each other.

    Published numbers, which noise moves as much as any effect: nothing is claimed of them.
    """
    scores, drawn = judged.by_dimension(judged.delta), dict[str, Array]()
    for attribute in design_columns(judged.images):
        first, second = draw_pairs(judged.images, attribute, options.rng())
        if len(first):
            drawn[attribute] = np.abs(scores[first] - scores[second])
            yield from _box_rows(drawn[attribute], judged, attribute)
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


def _box_rows(absolute: Array, judged: Judged, attribute: str) -> Iterator[Row]:
    """The median of every dimension and of all together, and the box around it."""
    for column, name in enumerate([*judged.names(), MEAN]):
        values = absolute[:, [column]] if column < absolute.shape[1] else absolute
        row = Row("perception.induced_variation", float(np.median(values)), len(absolute), judged.unit, attribute)
        row = row._replace(concept=name)
        yield row._replace(note="median over pairs that differ in this attribute alone")
        for share in BOX:
            value = float(np.quantile(values, share))
            yield row._replace(metric="perception.induced_variation_quantile", value=value, template=f"{share:g}")


def _rank_sum_rows(drawn: dict[str, Array], options: MeasureOptions) -> Iterator[Row]:
    """How often a pair of one attribute differs by more than one of another, over all pairs and dimensions.

    The published p takes all 8,000 values for independent, which pairs of one seed are not: it is given as released
    only.
    """
    compared = list(combinations(drawn, 2))
    tests = [stats.mannwhitneyu(drawn[first].ravel(), drawn[second].ravel()) for first, second in compared]
    adjusted = holm(np.array([test.pvalue for test in tests])) if tests else np.empty(0)
    note = "chance that a pair of the first differs by more than one of the second; 0.5: the same"
    for (first, second), test, p_value in zip(compared, tests, adjusted, strict=True):
        n, product = drawn[first].size + drawn[second].size, drawn[first].size * drawn[second].size
        value = float(test.statistic) / product
        row = Row("perception.induced_variation_test", value, n, STATISTIC, group=first, against=second, note=note)
        if options.compat:
            told = f"{note}; p: rank-sum over all values as if independent, Holm"
            row = row._replace(p_value=float(p_value), variant=AS_RELEASED, note=told)
        yield row._replace(landmark=EVEN_CHANCE)
