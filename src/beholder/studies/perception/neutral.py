"""The neutral prompt: which groups "a photo of a person" fits better, and what subtracting it (Δ) does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import polars as pl
from scipy import stats

from beholder.core.results import Row
from beholder.metrics.bootstrap import Resampler, interval_over
from beholder.metrics.clustered import CellMeans
from beholder.metrics.multiplicity import holm, shuffles_for
from beholder.metrics.person_shuffles import PersonShuffles
from beholder.studies.perception.prompts import CONTROLS
from beholder.studies.perception.scores import (
    EVERYONE,
    MOST_DRAWS,
    SEED,
    Array,
    Groups,
    Indices,
    Judged,
    finest,
    ordered_attributes,
)
from beholder.studies.study import MeasureOptions

GRID = 41
"""The number of points at which a density is given."""
AT_REST = "neutral_at_rest"
"""What numbers of pictures without a smile are called."""
FEWEST_SEEDS = 3
ALIKE = 1e-12
"""Scores that differ by less are the same."""
STATISTIC, CORRELATION, RATIO = "statistic", "correlation", "ratio"


def neutral_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Tests between groups, densities, and how far Δ brings the groups closer together."""
    groups, rest = finest(judged.images), at_rest(judged)
    before, after = (judged.by_dimension(scores).mean(axis=1) for scores in (judged.cosine, judged.delta))
    quantities = {"neutral": judged.neutral, "cosine": before, "delta_cosine": after}
    controls = {word: cosine for word in CONTROLS if (cosine := judged.word(word)) is not None}
    yield from _density_rows(groups, {**quantities, **controls})
    yield from _correlation_rows(judged)
    if rest is not None:
        yield from _density_rows(finest(rest.images), {AT_REST: rest.neutral})
    if groups.attribute != EVERYONE and len(groups.names) > 1:
        yield from _test_rows(judged, groups)
        yield from _narrowing_rows(judged, groups, quantities, options)
        if rest is not None:
            for row in _test_rows(rest, finest(rest.images)):
                yield row._replace(template=AT_REST)
        if judged.designed:
            yield from _seed_correlation_rows(judged if rest is None else rest)


def at_rest(judged: Judged) -> Judged | None:
    """The pictures without a smile, as in the study's Fig. S.13; None where smiling does not vary."""
    if "smiling" not in ordered_attributes(judged.images):
        return None
    return judged.rows((judged.images["smiling"] == 0).fill_null(False).to_numpy())


def _seed_correlation_rows(judged: Judged) -> Iterator[Row]:
    """r between the neutral cosines of two groups over the seeds that both have, as in the study's Fig. S.14."""
    groups = finest(judged.images)
    for first, second in combinations(groups.names, 2):
        a, b = _shared(judged, groups, first, second)
        row = Row("perception.neutral_group_r", None, len(a), CORRELATION, groups.attribute, first, second)
        if len(a) <= FEWEST_SEEDS or np.ptp(a) <= ALIKE or np.ptp(b) <= ALIKE:
            yield row._replace(note=f"{FEWEST_SEEDS} shared seeds or fewer, or all alike")
            continue
        r = stats.pearsonr(a, b)
        low, high = map(float, r.confidence_interval(0.95))
        yield row._replace(value=float(r.statistic), low=low, high=high, note="over the seeds that both groups have")


def _test_rows(judged: Judged, groups: Groups) -> Iterator[Row]:
    """Paired t-tests on shared seeds where there are seeds, else t-tests over people; Holm over the pairs."""
    compared = list(combinations(groups.names, 2))
    tests = [_test(judged, groups, first, second) for first, second in compared]
    adjusted = holm(np.array([np.nan if p is None else p for _, p, _, _ in tests]))
    for (first, second), (t, _, n, kind), p_value in zip(compared, tests, adjusted, strict=True):
        note = f"{kind}, first less second; p: Holm over {len(compared)} pairs"
        row = Row("perception.neutral_test", t, n, STATISTIC, subset=groups.attribute, note=note)
        yield row._replace(group=first, against=second, p_value=float(p_value))


def _test(judged: Judged, groups: Groups, first: str, second: str) -> tuple[float | None, float | None, int, str]:
    """t, p, how many were compared, and which test it is."""
    if SEED in judged.images.columns:
        a, b = _shared(judged, groups, first, second)
        kind = f"paired t over {len(a)} shared seeds"
        test = stats.ttest_rel(a, b) if len(a) > 1 and np.ptp(a - b) > ALIKE else None
        if test is None:
            return None, None, len(a), f"{kind}: too few, or all alike"
        return float(test.statistic), float(test.pvalue), len(a), kind
    codes = np.where(groups.mask(first), 0, np.where(groups.mask(second), 1, -1))
    means = CellMeans(judged.neutral, codes, judged.clusters, 2)
    weights = np.array([[1.0, -1.0]])
    difference, spread = means.combined(weights), means.spread(weights)
    n, error = int(difference.n[0]), float(np.sqrt(spread.covariance[0, 0]))
    if not np.isfinite(spread.free[0]) or error <= ALIKE:
        return None, None, n, "t over people: too few, or all alike"
    return float(difference.value[0, 0]) / error, float(difference.p_value[0, 0]), n, "t over people"


def _shared(judged: Judged, groups: Groups, first: str, second: str) -> tuple[Array, Array]:
    """The neutral cosine of both groups for each seed they share, as a mean over the seed's pictures."""
    table = judged.images.select(SEED).with_columns(value=pl.Series(judged.neutral), code=pl.Series(groups.codes))
    means = table.group_by(SEED, "code").agg(pl.col("value").mean())
    a, b = (means.filter(pl.col("code") == groups.names.index(name)) for name in (first, second))
    joined = a.join(b, on=SEED, suffix="_other").sort(SEED)
    return joined["value"].to_numpy(), joined["value_other"].to_numpy()


def _density_rows(groups: Groups, quantities: dict[str, Array]) -> Iterator[Row]:
    """Densities of the neutral cosine, and of the mean of all dimensions before and after Δ."""
    for name, values in quantities.items():
        margin = 0.1 * (np.ptp(values) or 1.0)
        grid = np.linspace(values.min() - margin, values.max() + margin, GRID)
        for group in groups.names:
            scores = values[groups.mask(group)]
            if len(scores) < 5 or np.ptp(scores) == 0:
                continue
            density = stats.gaussian_kde(scores)(grid)
            for score, height in zip(grid, density, strict=True):
                row = Row("perception.density", float(height), len(scores), "density", subset=name, group=group)
                yield row._replace(template=f"{score:.5f}")


def _narrowing_rows(
    judged: Judged, groups: Groups, quantities: dict[str, Array], options: MeasureOptions
) -> Iterator[Row]:
    """Spread of the group means after Δ divided by the spread before.

    Δ subtracts the noise of a single prompt from a mean over many words, so that any groups move apart, also groups
    made by lot. The landmark is therefore the ratio of shuffled groups.
    """
    inside = groups.codes >= 0
    codes, people = groups.codes[inside], judged.clusters[inside]
    resampler = Resampler(people, options.rng(), min(options.draws, MOST_DRAWS))
    once = np.ones((1, len(codes)))
    both = np.stack([quantities[name][inside] for name in ("cosine", "delta_cosine")], axis=1)
    spreads = []
    for values in both.T:
        drawn = [_spreads(weights, values, codes, len(groups.names)) for weights in (once, *resampler.weights())]
        spreads.append(np.concatenate(drawn))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = spreads[1] / spreads[0]
    for k, (concept, values_of) in enumerate((("groups", "the group means"), ("images", "all images"))):
        low, high = interval_over(ratios[1:, k], people, codes)
        value, note = float(ratios[0, k]), f"standard deviation of {values_of}, after Δ over before"
        note = note if np.isfinite(value) else f"{note}; before Δ all are alike"
        row = Row("perception.narrowing", value, len(codes), RATIO, low=low, high=high, note=note)
        row = row._replace(subset=groups.attribute, concept=concept)
        tested = concept == "groups" and np.isfinite(value)
        yield _against_shuffled(row, value, _shuffled_ratios(both, codes, people, options)) if tested else row


def _against_shuffled(row: Row, value: float, shuffled: Array) -> Row:
    """The row with the ratio of shuffled groups as its landmark, and its two-sided p."""
    known = shuffled[np.isfinite(shuffled)]
    if not len(known):
        return row
    hits = min(int((known >= value * (1 - ALIKE)).sum()), int((known <= value * (1 + ALIKE)).sum()))
    p_value, note = min(1.0, 2 * (1 + hits) / (1 + len(known))), f"landmark: median of {len(known)} shuffles of people"
    row = row._replace(landmark=float(np.median(known)), p_value=p_value, p_at_most=hits == 0 or None)
    return row._replace(note=f"{row.note}; {note}, which also give p")


def _shuffled_ratios(both: Array, codes: Indices, people: Indices, options: MeasureOptions) -> Array:
    """The ratio of spreads where people change groups; the finest groups leave no other label to shuffle within."""
    ratios = []
    for part in PersonShuffles(codes, people).parts(max(options.permutations, shuffles_for(1)), options.rng()):
        means = np.stack([_means_of((part == code).astype(np.float64), both) for code in range(int(codes.max()) + 1)])
        before, after = means.std(axis=0).T
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios.append(np.where(before > ALIKE, after / before, np.nan))
    return np.concatenate(ratios)


def _means_of(members: Array, values: Array) -> Array:
    """Mean of each column of `values` over the members of every shuffle, `[shuffles, columns]`."""
    return np.asarray((members @ values) / members.sum(axis=1, keepdims=True))


def _spreads(weights: Array, values: Array, codes: Indices, count: int) -> Array:
    """Standard deviation of the group means, and of the images, in every draw."""
    belongs = (codes[:, None] == np.arange(count)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (weights @ (belongs * values[:, None])) / (weights @ belongs)
    size, centred = weights.sum(axis=1), values - values.mean()
    variance = weights @ centred**2 / size - (weights @ centred / size) ** 2
    spreads = np.stack([means.std(axis=1), np.sqrt(np.maximum(variance, 0.0))], axis=1)
    return np.where(spreads > ALIKE, spreads, 0.0)


def _correlation_rows(judged: Judged) -> Iterator[Row]:
    """Correlation of a dimension's score with the neutral prompt's over the images, before and after Δ."""
    n = judged.images.height
    for metric, scores in (("cosine", judged.cosine), ("delta_cosine", judged.delta)):
        values = judged.by_dimension(scores)
        for column, name in enumerate(judged.names()):
            row = Row("perception.neutral_r", None, n, CORRELATION, subset=metric, concept=name)
            if n <= 3 or np.ptp(values[:, column]) == 0 or np.ptp(judged.neutral) == 0:
                yield row._replace(note="too few images, or all alike")
                continue
            correlation = stats.pearsonr(judged.neutral, values[:, column])
            row = row._replace(value=float(correlation.statistic))
            low, high = map(float, correlation.confidence_interval(0.95))
            together = "no interval: a person's pictures are not independent"
            yield row._replace(note=together) if judged.repeated else row._replace(low=low, high=high)
