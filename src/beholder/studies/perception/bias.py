"""Conventional bias metrics, as in the study's Table S.1: markedness, mean cosine, SC-WEAT, rankings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from beholder.core.results import Row
from beholder.metrics.bootstrap import Resampler, interval_over
from beholder.metrics.clustered import CellMeans
from beholder.metrics.intervals import mean_interval
from beholder.metrics.markedness import unmarked
from beholder.metrics.multiplicity import holm, shuffles_for
from beholder.metrics.sc_weat import explained, permutation_test, sc_weat
from beholder.studies.perception import scores
from beholder.studies.perception.families import family
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


def bias_rows(judged: Judged, options: MeasureOptions, tops: Sequence[int] = ()) -> Iterator[Row]:
    """Every conventional metric of every attribute with two groups or more."""
    attributes = [groups for groups in scores.groupings(judged.images) if groups.attribute not in (EVERYONE, *CROSSED)]
    for groups in attributes:
        if judged.has_neutral:
            yield from markedness_rows(judged, groups, options)
        yield from mean_cosine_rows(judged, groups)
    yield from sc_weat_rows(judged, attributes, options)
    yield from ranking_rows(judged, attributes, options, tops)


# Markedness


def markedness_rows(judged: Judged, groups: Groups, options: MeasureOptions) -> Iterator[Row]:
    """Per cent of a group's images that the neutral prompt fits better than the group's own word.

    `expected` is what a model gives that does not know these groups: the same word over everybody's images.
    """
    own_words = {name: own for name in groups.names if (own := own_word(name)) in judged.words}
    strata, beyond = judged.others(groups.attribute), np.full(judged.images.height, np.nan)
    expected: dict[str, float] = {}
    for name, own in own_words.items():
        members, everyone = groups.mask(name), unmarked(judged.neutral, judged.cosine[:, judged.words.index(own)])
        level = _stratum_means(everyone, strata, groups.codes >= 0)
        values, expected[name] = everyone[members], 100 * float(level[members].mean())
        beyond[members] = 100 * (everyone - level)[members]
        low, high = mean_interval(values, Resampler(judged.clusters[members], options.rng(), options.draws))
        row = Row("perception.markedness", 100 * float(values.mean()), len(values), PER_CENT, groups.attribute, name)
        row = row._replace(concept=own, low=100 * low, high=100 * high, expected=expected[name])
        yield _as_released(row, judged) if options.compat else row
    if len(own_words) > 1 and not (options.compat and _misread(judged, groups.attribute)):
        yield from _markedness_gaps(judged, groups, beyond, expected, options)


def own_word(group: str) -> str:
    """The word that names a group."""
    return OWN_WORDS.get(group.lower(), group.lower())


def _stratum_means(values: Array, strata: Indices | None, labelled: npt.NDArray[np.bool_]) -> Array:
    """The mean of everybody who has a label, within the groups of the other labels."""
    codes = np.zeros(len(values), dtype=int) if strata is None else strata + 1
    level = np.zeros(len(values))
    for code in np.unique(codes):
        inside = codes == code
        level[inside] = values[inside & labelled].mean() if (inside & labelled).any() else np.nan
    return level


def _markedness_gaps(
    judged: Judged, groups: Groups, beyond: Array, expected: dict[str, float], options: MeasureOptions
) -> Iterator[Row]:
    """Differences of markedness; the landmark is the difference for a model that does not know these groups."""
    compared = pairs(list(expected))
    weights = np.array([difference(groups, *both) for both in compared])
    cells = CellMeans(beyond, np.where(np.isnan(beyond), -1, groups.codes), judged.clusters, len(groups.names))
    gaps = cells.combined(weights)
    together = family(gaps.value, cells.spread(weights), options.rng())
    for place, (first, second) in enumerate(compared):
        row = Row("perception.markedness_gap", None, int(gaps.n[place]), PER_CENT, groups.attribute, first, second)
        row = together.row(place, row, expected[first] - expected[second])
        if row.low is not None and row.high is not None:  # nothing differs by more than 100 points
            row = row._replace(low=max(row.low, -100.0), high=min(row.high, 100.0))
        yield row._replace(note=f"landmark: a model that does not know these groups; {together.how}")


def difference(groups: Groups, first: str, second: str) -> Array:
    """Weights of the groups: the first less the second."""
    weights = np.zeros(len(groups.names))
    weights[groups.names.index(first)], weights[groups.names.index(second)] = 1.0, -1.0
    return weights


def _misread(judged: Judged, attribute: str | None) -> bool:
    """Whether the released script finds no row of these groups: it looks for `male` among FairFace's `Male`."""
    return attribute == "gender" and "split" in judged.images.columns


def _as_released(row: Row, judged: Judged) -> Row:
    """Where the released script finds no row, it writes 0."""
    if not _misread(judged, row.subset) or row.group == row.concept:
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


def sc_weat_rows(judged: Judged, attributes: list[Groups], options: MeasureOptions) -> Iterator[Row]:
    """Effect size of every dimension (mean over its words) and of their mean, for every two groups.

    p is corrected by Holm's method over pairs and dimensions; means apart.
    """
    compared = [(groups, *both) for groups in attributes for both in pairs(groups.names)]
    shuffles = max(options.permutations, shuffles_for(len(compared) * len(judged.dimensions)))
    rows: list[Row] = []
    for groups, first, second in compared:
        a, b = (np.flatnonzero(groups.mask(name)) for name in (first, second))
        if options.compat:  # the released script needs parts of one size and takes the first of each
            a, b = a[: min(len(a), len(b))], b[: min(len(a), len(b))]
        if min(len(a), len(b)) < 2:
            continue
        for row in _pair_rows(judged, a, b, judged.others(groups.attribute), shuffles, options):
            rows.append(row._replace(subset=groups.attribute, group=first, against=second))
    for means in (False, True):
        part = [row for row in rows if (row.concept == MEAN) == means]
        adjusted = holm(np.array([row.p_value for row in part], dtype=np.float64)) if part else np.empty(0)
        for row, p_value in zip(part, adjusted, strict=True):
            yield row._replace(p_value=float(p_value), note=f"{row.note}, Holm over {len(part)}")


def _pair_rows(
    judged: Judged, a: Indices, b: Indices, strata: Indices | None, shuffles: int, options: MeasureOptions
) -> Iterator[Row]:
    both, side = np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)])
    words, people = judged.cosine[both], judged.clusters[both]
    weights = _word_weights(judged)
    drawn = _weighted(weights, _effect_draws(words, len(a), people, options).T).T
    tested = words @ weights.T
    held = None if strata is None else strata[both]
    test = permutation_test(
        tested[: len(a)], tested[len(a) :], options.rng(), samples=shuffles, people=people, strata=held
    )
    effects = _weighted(weights, sc_weat(words[: len(a)], words[len(a) :]).effect)
    landmarks = np.zeros(len(weights)) if held is None else weights @ _carried(words, side == 0, held)
    how = f"p: {'all' if test.exact else 'sampled'} {test.partitions} partitions of people"
    for place, name in enumerate([*judged.names(), MEAN]):
        low, high = interval_over(drawn[:, place], people, side)
        over = (
            f"mean over {len(weights) - 1} dimensions" if name == MEAN else f"mean over {_count(weights[place])} words"
        )
        row = Row("perception.sc_weat", float(effects[place]), len(both), DEVIATIONS, low=low, high=high, concept=name)
        row = row._replace(p_value=float(test.p_value[place]), p_at_most=bool(test.at_most[place]) or None)
        yield row._replace(landmark=round(float(landmarks[place]), 12), note=f"mean over {over}; {how}")


def _word_weights(judged: Judged) -> Array:
    """What each word counts for in every dimension and in their mean, `[n_dimensions + 1, n_words]`."""
    weights = np.zeros((len(judged.dimensions), len(judged.words)))
    for row, dimension in zip(weights, judged.dimensions, strict=True):
        row[judged.places(dimension)] = 1 / len(judged.places(dimension))
    return np.vstack([weights, weights.mean(axis=0)])


def _weighted(weights: Array, effects: Array) -> Array:
    """Means over words; a word without an effect size makes those undefined that it counts for, and no others."""
    missing = np.isnan(effects)
    return np.where(weights @ missing > 0, np.nan, weights @ np.where(missing, 0.0, effects))


def _carried(words: Array, first: npt.NDArray[np.bool_], strata: Indices) -> Array:
    """The effect size of each word that the other labels explain."""
    spread = words.std(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(spread > 0, explained(words, first, strata) / spread, 0.0))


def _count(weights: Array) -> int:
    return int((weights > 0).sum())


def _effect_draws(words: Array, size: int, people: Indices, options: MeasureOptions) -> Array:
    """Effect sizes of every word in resampled groups, from resampled first and second moments."""
    n = len(words)
    centred = words - words.mean(axis=0)
    side = np.arange(n) < size
    moments = (centred, centred**2)
    columns = [np.where(side[:, None] == first, part, np.nan) for first in (True, False) for part in moments]
    resampler = Resampler(people, options.rng(), min(options.draws, MOST_DRAWS))
    means = resampler.means(np.concatenate(columns, axis=1))
    first, first_square, second, second_square = np.split(means, 4, axis=1)
    share = size / n
    mean = share * first + (1 - share) * second
    variance = share * first_square + (1 - share) * second_square - mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((first - second) / np.sqrt(variance * n / (n - 1)))
