"""Conventional bias metrics, as in the study's Table S.1: markedness, mean cosine, SC-WEAT, rankings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from beholder.core.results import Row
from beholder.metrics.bootstrap import Resampler, interval_over
from beholder.metrics.clustered import CellMeans
from beholder.metrics.intervals import mean_interval
from beholder.metrics.markedness import unmarked
from beholder.metrics.sc_weat import permutation_test, sc_weat
from beholder.studies.perception import scores
from beholder.studies.perception.prompts import POSITIVE
from beholder.studies.perception.ranking import ranking_rows
from beholder.studies.perception.scores import CROSSED, EVERYONE, MEAN, MOST_DRAWS, Array, Groups, Indices, Judged
from beholder.studies.study import MeasureOptions

PER_CENT, DEVIATIONS = "per cent", "standard deviations"
OWN_WORDS = {"woman": "female", "man": "male"}
AS_RELEASED = "as released"
"""The variant of a number that repeats a fault of the released script."""
FIRST = ("asian", "white", "male", "man")
"""Who comes first in a pair, as in the study's table: Asian before White before Black, Male before Female."""


def bias_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Every conventional metric of every attribute with two groups or more."""
    attributes = [groups for groups in scores.groupings(judged.images) if groups.attribute not in (EVERYONE, *CROSSED)]
    for groups in attributes:
        yield from markedness_rows(judged, groups, options)
        yield from mean_cosine_rows(judged, groups)
        yield from sc_weat_rows(judged, groups, options)
    yield from ranking_rows(judged, attributes, options)


# Markedness


def markedness_rows(judged: Judged, groups: Groups, options: MeasureOptions) -> Iterator[Row]:
    """Per cent of a group's images that the neutral prompt fits better than the group's own word."""
    for name in groups.names:
        own = OWN_WORDS.get(name.lower(), name.lower())
        cosine = judged.word(own)
        if cosine is None:
            continue
        members = groups.mask(name)
        values = unmarked(judged.neutral[members], cosine[members])
        low, high = mean_interval(values, Resampler(judged.clusters[members], options.rng(), options.draws))
        row = Row("perception.markedness", 100 * float(values.mean()), len(values), PER_CENT, groups.attribute, name)
        row = row._replace(concept=own, low=100 * low, high=100 * high)
        yield _as_released(row, judged) if options.compat else row


def _as_released(row: Row, judged: Judged) -> Row:
    """The released script looks for `male` among FairFace's `Male`, finds no row and writes 0."""
    fairface = "split" in judged.images.columns
    if not fairface or row.subset != "gender" or row.group == row.concept:
        return row
    note = (
        f"{AS_RELEASED}: the script looks for '{row.concept}' among '{row.group}', finds no row and writes 0; "
        f"from the {row.n} rows it is {row.value:.2f} ({row.low:.2f}–{row.high:.2f})"
    )
    return row._replace(value=0.0, low=None, high=None, n=0, variant=AS_RELEASED, note=note)


# Mean cosine


def mean_cosine_rows(judged: Judged, groups: Groups) -> Iterator[Row]:
    """Mean of the means over the positive dimensions."""
    positive = [column for column, d in enumerate(judged.dimensions) if d.valence == POSITIVE]
    if not positive:
        return
    cosine = judged.by_dimension(judged.cosine)[:, positive].mean(axis=1)
    means = CellMeans(cosine, groups.codes, judged.clusters, len(groups.names)).means()
    note = f"over {len(positive)} positive dimensions"
    for k, name in enumerate(groups.names):
        row = scores.estimate_row("mean_cosine", means, (k, 0), judged.unit, int(means.n[k]))
        yield row._replace(subset=groups.attribute, group=name, note=note)


# SC-WEAT


def pairs(names: list[str]) -> list[tuple[str, str]]:
    """Every two groups, in the study's order."""

    def rank(name: str) -> tuple[int, list[tuple[int, str]]]:
        return (FIRST.index(name.lower()) if name.lower() in FIRST else len(FIRST)), scores.natural(name)

    return list(combinations(sorted(names, key=rank), 2))


def sc_weat_rows(judged: Judged, groups: Groups, options: MeasureOptions) -> Iterator[Row]:
    """Effect size of every dimension (mean over its words) and of all words, for every two groups."""
    for first, second in pairs(groups.names):
        a, b = (np.flatnonzero(groups.mask(name)) for name in (first, second))
        if options.compat:  # the released script needs parts of one size and takes the first of each
            a, b = a[: min(len(a), len(b))], b[: min(len(a), len(b))]
        if min(len(a), len(b)) < 2:
            continue
        for row in _pair_rows(judged, a, b, options):
            yield row._replace(subset=groups.attribute, group=first, against=second)


def _pair_rows(judged: Judged, a: Indices, b: Indices, options: MeasureOptions) -> Iterator[Row]:
    used = sorted({column for dimension in judged.dimensions for column in judged.places(dimension)})
    words = judged.cosine[:, used]
    effect = sc_weat(words[a], words[b]).effect
    draws = _effect_draws(words, a, b, judged.clusters, options)
    both, side = np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)])
    dimensions = judged.by_dimension(judged.cosine)
    tested = np.concatenate([dimensions, words.mean(axis=1, keepdims=True)], axis=1)
    test = permutation_test(tested[a], tested[b], options.rng(), samples=options.draws)
    how = f"p: {'all' if test.exact else 'sampled'} {test.partitions} partitions"
    parts = {d.name: [used.index(column) for column in judged.places(d)] for d in judged.dimensions}
    parts[MEAN] = list(range(len(used)))
    for (name, columns), p_value in zip(parts.items(), test.p_value, strict=True):
        low, high = interval_over(draws[:, columns].mean(axis=1), judged.clusters[both], side)
        over = f"mean over {len(columns)} words"
        row = Row("perception.sc_weat", float(effect[columns].mean()), len(a) + len(b), DEVIATIONS, low=low, high=high)
        yield row._replace(concept=name, p_value=float(p_value), note=f"{over}; {how}")


def _effect_draws(words: Array, a: Indices, b: Indices, clusters: Indices, options: MeasureOptions) -> Array:
    """Effect sizes of every word in resampled groups, from resampled first and second moments."""
    both = np.concatenate([a, b])
    centred = words[both] - words[both].mean(axis=0)
    side = np.arange(len(both)) < len(a)
    moments = (centred, centred**2)
    columns = [np.where(side[:, None] == first, part, np.nan) for first in (True, False) for part in moments]
    resampler = Resampler(clusters[both], options.rng(), min(options.draws, MOST_DRAWS))
    means = resampler.means(np.concatenate(columns, axis=1))
    first, first_square, second, second_square = np.split(means, 4, axis=1)
    share = len(a) / len(both)
    mean = share * first + (1 - share) * second
    variance = share * first_square + (1 - share) * second_square - mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((first - second) / np.sqrt(variance * len(both) / (len(both) - 1)))
