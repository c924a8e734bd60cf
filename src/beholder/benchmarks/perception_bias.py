"""Perception's conventional bias metrics: markedness, mean cosine, SC-WEAT, skew, NDKL (the study's Table S.1)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from beholder.benchmarks.benchmark import MeasureOptions
from beholder.benchmarks.perception_scores import EVERYONE, Array, Groups, Judged, finest, groupings, natural
from beholder.benchmarks.rows import join
from beholder.metrics.bootstrap import Resampler, percentile_interval
from beholder.metrics.clustered import CellMeans
from beholder.metrics.intervals import mean_interval
from beholder.metrics.markedness import unmarked
from beholder.metrics.ranking import descending, ndkl, skew_at_k, top_shares
from beholder.metrics.sc_weat import permutation_test, sc_weat
from beholder.prompts.perception import POSITIVE
from beholder.results import Row

MEAN = "mean"
"""The concept of a mean over the dimensions."""
PER_CENT, DEVIATIONS, LOGARITHM, NATS = "per cent", "standard deviations", "natural logarithm", "nats"
OWN_WORDS = {"woman": "female", "man": "male"}
FIRST = ("asian", "white", "male", "man")
"""Who is named first in a pair, as in the study's table: Asian over White over Black, Male over Female."""
TOP = (1000, 100)
"""The study's k, and one for smaller sets; either only where it is at most half of what is ranked."""
MOST_DRAWS = 500
"""Rankings are resampled at most so often."""


def bias_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Every conventional metric of every attribute with two groups or more."""
    attributes = [groups for groups in groupings(judged.images) if "×" not in groups.attribute]
    attributes = [groups for groups in attributes if groups.attribute != EVERYONE]
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
        mine = groups.mask(name)
        values = unmarked(judged.neutral[mine], cosine[mine])
        low, high = mean_interval(values, Resampler(judged.clusters[mine], options.rng(), options.draws))
        row = Row(
            "perception.markedness",
            100 * float(values.mean()),
            len(values),
            PER_CENT,
            low=100 * low,
            high=100 * high,
        )
        row = row._replace(subset=groups.attribute, group=name, concept=own)
        yield _as_released(row, judged) if options.compat else row


def _as_released(row: Row, judged: Judged) -> Row:
    """The released script looks for `male` among FairFace's `Male`, finds no row and writes 0."""
    fairface = "split" in judged.images.columns
    if not fairface or row.subset != "gender" or row.group == row.concept:
        return row
    note = (
        f"as released: the script looks for '{row.concept}' among '{row.group}', finds no row and writes 0; "
        f"from the {row.n} rows it is {row.value:.2f} ({row.low:.2f}–{row.high:.2f})"
    )
    return row._replace(value=0.0, low=None, high=None, n=0, note=note)


# Mean cosine


def mean_cosine_rows(judged: Judged, groups: Groups) -> Iterator[Row]:
    """Mean of the means over the positive dimensions."""
    positive = [place for place, d in enumerate(judged.dimensions) if d.valence == POSITIVE]
    if not positive:
        return
    scores = judged.by_dimension(judged.cosine)[:, positive].mean(axis=1)
    found = CellMeans(scores, groups.codes, judged.clusters, len(groups.names)).means()
    note = f"over {len(positive)} positive dimensions"
    for k, name in enumerate(groups.names):
        low, value, high = (float(part[k, 0]) for part in (found.low, found.value, found.high))
        row = Row(
            "perception.mean_cosine", value, int(found.n[k]), judged.unit, low=low, high=high, note=note
        )
        yield row._replace(subset=groups.attribute, group=name)


# SC-WEAT


def pairs(names: list[str]) -> list[tuple[str, str]]:
    """Every two groups, the study's first one first."""

    def place(name: str) -> tuple[int, list[tuple[int, str]]]:
        return (FIRST.index(name.lower()) if name.lower() in FIRST else len(FIRST)), natural(name)

    return list(combinations(sorted(names, key=place), 2))


def sc_weat_rows(judged: Judged, groups: Groups, options: MeasureOptions) -> Iterator[Row]:
    """Effect size of every dimension (mean over its words) and over all words, pair by pair."""
    for first, second in pairs(groups.names):
        a, b = (np.flatnonzero(groups.mask(name)) for name in (first, second))
        if options.compat:  # the released script needs parts of one size and takes the first of each
            a, b = a[: min(len(a), len(b))], b[: min(len(a), len(b))]
        if min(len(a), len(b)) < 2:
            continue
        for row in _pair_rows(judged, a, b, options):
            yield row._replace(subset=groups.attribute, group=f"{first} over {second}")


def _pair_rows(
    judged: Judged, a: npt.NDArray[np.int_], b: npt.NDArray[np.int_], options: MeasureOptions
) -> Iterator[Row]:
    used = sorted({place for dimension in judged.dimensions for place in judged.places(dimension)})
    words = judged.cosine[:, used]
    effect = sc_weat(words[a], words[b]).effect
    draws = _effect_draws(words, a, b, judged.clusters, options)
    dimensions = judged.by_dimension(judged.cosine)
    tested = np.concatenate([dimensions, words.mean(axis=1, keepdims=True)], axis=1)
    test = permutation_test(tested[a], tested[b], options.rng(), samples=options.draws)
    how = f"p: {'all' if test.exact else 'sampled'} {test.partitions} partitions"
    parts = {d.name: [used.index(place) for place in judged.places(d)] for d in judged.dimensions}
    parts[MEAN] = list(range(len(used)))
    for (name, columns), p_value in zip(parts.items(), test.p_value, strict=True):
        low, high = percentile_interval(draws[:, columns].mean(axis=1))
        over = f"mean over {len(columns)} words"
        row = Row(
            "perception.sc_weat",
            float(effect[columns].mean()),
            len(a) + len(b),
            DEVIATIONS,
            low=low,
            high=high,
        )
        yield row._replace(concept=name, p_value=float(p_value), note=f"{over}; {how}")


def _effect_draws(
    words: Array,
    a: npt.NDArray[np.int_],
    b: npt.NDArray[np.int_],
    clusters: npt.NDArray[np.int_],
    options: MeasureOptions,
) -> Array:
    """Effect sizes of every word in resampled groups, from resampled first and second moments."""
    both = np.concatenate([a, b])
    centred = words[both] - words[both].mean(axis=0)
    side = np.arange(len(both)) < len(a)
    columns = [
        np.where(side[:, None] == mine, part, np.nan)
        for mine in (True, False)
        for part in (centred, centred**2)
    ]
    resampler = Resampler(clusters[both], options.rng(), min(options.draws, MOST_DRAWS))
    means = resampler.means(np.concatenate(columns, axis=1))
    first, first_square, second, second_square = np.split(means, 4, axis=1)
    share = len(a) / len(both)
    mean = share * first + (1 - share) * second
    variance = share * first_square + (1 - share) * second_square - mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((first - second) / np.sqrt(variance * len(both) / (len(both) - 1)))


# Rankings


def ranking_rows(judged: Judged, attributes: list[Groups], options: MeasureOptions) -> Iterator[Row]:
    """Skew@k, MaxSkew@k and NDKL of every dimension on a subset balanced over the finest groups."""
    compared = [groups for groups in attributes if len(groups.names) > 1]
    if not compared:
        note = "one group only: nothing to rank against"
        yield Row("perception.skew", None, judged.images.height, LOGARITHM, concept=MEAN, note=note)
        return
    subset, how = balanced_subset(judged, options)
    part = judged.rows(subset)
    order = descending(part.by_dimension(part.cosine), released=options.compat)
    for groups in compared:
        codes = groups.codes[subset]
        for k in [k for k in TOP if 2 * k <= len(codes)] or [max(1, len(codes) // 4)]:
            yield from _skew_rows(part, groups, codes, order, k, options, how)
        yield from _ndkl_rows(part, groups, codes, order, options, how)


def balanced_subset(judged: Judged, options: MeasureOptions) -> tuple[npt.NDArray[np.int_], str]:
    """Equally many images of each of the finest groups, drawn at random; or the released script's draw."""
    groups = finest(judged.images)
    if options.compat and "released_balance" in judged.images.columns:
        chosen = np.flatnonzero(judged.images["released_balance"].to_numpy())
        if len(chosen):
            return chosen, f"{len(chosen)} images, balanced as released (before ages under 20 are dropped)"
    members = [np.flatnonzero(groups.codes == code) for code in range(len(groups.names))]
    fewest, rng = min(len(mine) for mine in members), options.rng()
    chosen = np.sort(np.concatenate([rng.choice(mine, fewest, replace=False) for mine in members]))
    return chosen, f"{fewest} images of each {groups.attribute}"


def _skew_rows(
    part: Judged, groups: Groups, codes: npt.NDArray[np.int_], order: npt.NDArray[np.intp], k: int,
    options: MeasureOptions, how: str,
) -> Iterator[Row]:  # fmt: skip
    desired = np.full(len(groups.names), 1 / len(groups.names))
    skew = skew_at_k(codes[order], desired, k)
    draws = _skew_draws(part, codes, order, desired, k, options)
    top = f"k={k}"
    names = [*part.names(), MEAN]
    if k > len(codes) / 3:
        how = f"{how}; k is {100 * k / len(codes):.0f} % of those ranked"
    for column, group in enumerate(groups.names):
        for place, name in enumerate(names):
            value, note = _over_dimensions(skew[:, column], place, group, k)
            low, high = percentile_interval(_finite_mean(draws[:, :, column], place))
            row = Row(
                "perception.skew", value, len(codes), LOGARITHM, low=low, high=high, note=join((how, note))
            )
            yield row._replace(subset=groups.attribute, group=group, concept=name, template=top)
    largest = skew.max(axis=1)
    for place, name in enumerate(names):
        value = float(largest[place] if place < len(largest) else largest.mean())
        low, high = percentile_interval(_finite_mean(draws.max(axis=2), place))
        row = Row("perception.max_skew", value, len(codes), LOGARITHM, low=low, high=high, note=how)
        yield row._replace(subset=groups.attribute, concept=name, template=top)


def _over_dimensions(skew: Array, place: int, group: str, k: int) -> tuple[float | None, str | None]:
    """One dimension's skew, or their mean without those that are −∞."""
    if place < len(skew):
        absent = f"no image of {group} in the top {k}: −∞"
        return (float(skew[place]), None) if np.isfinite(skew[place]) else (None, absent)
    there = skew[np.isfinite(skew)]
    left_out = len(skew) - len(there)
    note = f"{left_out} of {len(skew)} dimensions are −∞ and left out of the mean" if left_out else None
    return (float(there.mean()) if len(there) else None), note


def _finite_mean(draws: Array, place: int) -> Array:
    """The draws of one dimension, or of the mean over the dimensions that are finite in a draw."""
    if place < draws.shape[1]:
        return np.asarray(draws[:, place])
    there = np.isfinite(draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(there, draws, 0.0).sum(axis=1) / there.sum(axis=1))


def _skew_draws(
    part: Judged, codes: npt.NDArray[np.int_], order: npt.NDArray[np.intp], desired: Array, k: int,
    options: MeasureOptions,
) -> Array:  # fmt: skip
    """Skews of resampled images, `[n_draws, n_dimensions, n_groups]`; the balance is kept by reweighting."""
    resampler = Resampler(part.clusters, options.rng(), min(options.draws, MOST_DRAWS))
    belongs = (codes[:, None] == np.arange(len(desired))).astype(np.float64)
    found = []
    for weights in resampler.weights():
        sizes = weights @ belongs
        even = weights * ((belongs.sum(axis=0) / np.maximum(sizes, 1e-12)) @ belongs.T)
        found.append(
            np.stack([top_shares(even[:, row], codes[row], len(desired), k) for row in order], axis=1)
        )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.concatenate(found) / desired))


def _ndkl_rows(
    part: Judged, groups: Groups, codes: npt.NDArray[np.int_], order: npt.NDArray[np.intp],
    options: MeasureOptions, how: str,
) -> Iterator[Row]:  # fmt: skip
    desired = np.full(len(groups.names), 1 / len(groups.names))
    values = ndkl(codes[order], desired)
    rng = options.rng()
    shuffled = ndkl(np.stack([rng.permutation(codes) for _ in range(options.permutations)]), desired)
    note = f"{shuffled.mean():.4f} expected of a ranking without preference ({len(shuffled)} shuffles)"
    for place, name in enumerate([*part.names(), MEAN]):
        value = float(values[place] if place < len(values) else values.mean())
        p_value = (
            (1 + float((shuffled >= value).sum())) / (1 + len(shuffled)) if place < len(values) else None
        )
        row = Row("perception.ndkl", value, len(codes), NATS, p_value=p_value, note=join((how, note)))
        yield row._replace(subset=groups.attribute, concept=name)
