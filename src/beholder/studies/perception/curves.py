"""Means and curves: scores by group, trajectories over age and smiling, separation, confounds.

Every number is a mean over images, or a curve through such means. Its interval keeps the pictures of a seed together.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import stats
from scipy.cluster.hierarchy import fcluster, linkage

from beholder.comparison.family import FEWEST, Part, comparison_at, judge
from beholder.comparison.groups import CROSSING, Groups, group_by
from beholder.comparison.means import compare_groups
from beholder.core.results import Row
from beholder.core.types import Array, Codes
from beholder.metrics.clustered import BySeed, CellMeans, combined, polynomial_weights
from beholder.studies.perception.design import fits_by_group, judged_by_seed, seed_row
from beholder.studies.perception.prompts import NEGATIVE, POSITIVE
from beholder.studies.perception.scores import CROSSED, EVERYONE, MEAN, Judged, pairs
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

FEWEST_OF_AN_AGE = 100  # the study's rule for UTKFace: only ages with this many images, and equally many of each
FEWEST_AGES = 3
GROUP_LEVELS = ("age", "smiling")  # attributes with a curve for each group; the others have one for everyone
CONFOUNDS = ("smiling", "lighting", "pose")
NO_INTERVAL = "no interval: a few ages do not tell how far ages spread"
"""Every kind of interval that was tried covered the distance in 12 to 91 of 100 worlds: docs/perception.md."""


def score_rows(judged: Judged) -> Iterator[Row]:
    """Cosine and Δ of every dimension and word for everyone and every group."""
    notes = {name: f"without {', '.join(map(repr, words))}: no score" for name, words in judged.missing.items()}
    quantities = dict[str, tuple[Array, Sequence[str | None]]]()
    quantities["cosine"] = judged.by_dimension(judged.cosine), judged.names()
    if judged.has_neutral:
        quantities["delta_cosine"] = judged.by_dimension(judged.delta), judged.names()
        quantities["word_delta_cosine"] = judged.delta, judged.words
        quantities["neutral_cosine"] = judged.neutral[:, None], [None]
    for groups in judged.groupings:
        for metric, (values, concepts) in quantities.items():
            means = CellMeans(values, groups.codes, judged.people.codes, len(groups.names)).means()
            for k, group in enumerate(groups.names):
                for column, concept in enumerate(concepts):
                    row = judged.estimate(metric, means, (k, column))
                    note = notes.get(concept or "") if metric in ("cosine", "delta_cosine") else None
                    yield row._replace(subset=groups.attribute, group=group, concept=concept, note=note)


def gap_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Every two groups: the difference of their Δ, as it is and within the groups of the other attributes."""
    # All attributes, crossed groups and dimensions are one family. Two crossed groups that share a label show what an
    # attribute does within one group of another, so that opposite effects do not cancel.
    values, rng = judged.by_dimension(judged.delta), options.rng()
    compared = [groups for groups in judged.groupings if len(groups.names) > 1]
    made = [judged.compare(values, groups, rng, options) for groups in compared]
    count = sum(each.part.value.size for each in made)
    note = f"Δ of the first less Δ of the second; interval and p hold for all {count} at once"
    for groups, each, verdicts in zip(compared, made, judge([each.part for each in made]), strict=True):
        means = {name: values[groups.mask(name)].mean(axis=0) for name in groups.names}
        for first, second in pairs(groups.names):
            n = int((groups.mask(first) | groups.mask(second)).sum())
            for column, name in enumerate(judged.names()):
                value = float(means[first][column] - means[second][column])
                row = Row("perception.gap", value, n, judged.unit, groups.attribute, first, second, name, note=note)
                yield from each.rows(verdicts, row, column)
        if groups.attribute not in CROSSED:
            yield from _adjusted_rows(judged, groups, values)


def _adjusted_rows(judged: Judged, groups: Groups, values: Array) -> Iterator[Row]:
    """Differences at equal shares of the other labels: within their groups, weighted by how many images of both."""
    others = tuple(name for name in judged.grouped if name != groups.attribute)
    if not others:
        return
    strata = group_by(judged.images, others)
    count = len(strata.names)
    codes = np.where((groups.codes >= 0) & (strata.codes >= 0), groups.codes * count + strata.codes, -1)
    cells = CellMeans(values, codes, judged.people.codes, len(groups.names) * count)
    sizes, people = (each.reshape(-1, count) for each in (cells.n, cells.people))
    for first, second in pairs(groups.names):
        both = [groups.names.index(first), groups.names.index(second)]
        usable = (people[both] > 1).all(axis=0)
        if usable.any():
            weights, n = sizes[both].sum(axis=0)[usable], int(sizes[both][:, usable].sum())
            means = cells.value.reshape(len(groups.names), count, -1)[both][:, usable]
            gaps = np.average(means[0] - means[1], axis=0, weights=weights)
            note = "at equal shares of the other labels, weighted by images; describes"
            for row in judged.dimension_rows("adjusted_gap", gaps, n, first):
                yield row._replace(subset=groups.attribute, against=second, note=note)


def trajectory_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Each dimension over each ordered attribute: the means at every level, and a second-degree curve through them."""
    for attribute in judged.ordered:
        part, note = followed(judged, attribute, options)
        everyone, groups = part.groupings[0], part.finest
        by_group = attribute in GROUP_LEVELS and groups.attribute != EVERYONE
        for grouping in (everyone, groups) if by_group else (everyone,):
            for group in grouping.names:
                yield from _curve_rows(part, attribute, grouping, group, note)


def followed(judged: Judged, attribute: str, options: MeasureOptions) -> tuple[Judged, str | None]:
    """The images of an attribute's curve; single years of age are chosen by the study's rule, or put into bands."""
    levels = judged.images[attribute]
    bands = levels.drop_nulls().n_unique() <= 10
    if attribute != "age" or judged.designed or (bands and not options.compat):
        return judged, None
    fewest_of = 1 if bands else FEWEST_OF_AN_AGE  # the study samples bands equally too
    counts = levels.drop_nulls().value_counts().sort("age").filter(pl.col("count") >= fewest_of)
    if bands or counts.height >= FEWEST_AGES:
        kind = "band of ages" if bands else f"age with {FEWEST_OF_AN_AGE} or more"
        fewest, rng = int(counts["count"].min()), options.rng()  # type: ignore[arg-type]
        images = [np.flatnonzero((levels == age).to_numpy()) for age in counts["age"]]
        chosen = np.sort(np.concatenate([rng.choice(of_age, fewest, replace=False) for of_age in images]))
        return judged.rows(chosen), f"{fewest} images of each {kind}"
    mean_age = pl.col("age").mean().over("age_band").round(1)
    banded = judged.images.with_columns(mean_age) if "age_band" in judged.images.columns else judged.images
    few = f"bands of ages at their mean: {counts.height} single ages have {FEWEST_OF_AN_AGE} images"
    return judged._replace(images=banded), few


def _curve_rows(judged: Judged, attribute: str, groups: Groups, group: str, note: str | None) -> Iterator[Row]:
    levels, codes = judged.levels(attribute)
    codes = np.where(groups.mask(group), codes, -1)
    cells = CellMeans(judged.by_dimension(judged.delta), codes, judged.people.codes, len(levels))
    several = np.flatnonzero(cells.people > 1)  # one person does not tell how far a level spreads: no part of the fit
    there = np.flatnonzero(cells.people)
    if len(there) < 2:
        return
    means, fitted, curve = cells.means(), None, dict[int, int]()
    if len(several) > 1:
        weights = np.zeros((len(several), len(levels)))
        weights[:, several] = polynomial_weights(np.array(levels)[several])
        fitted, curve = (cells.combined(weights), {level: k for k, level in enumerate(several.tolist())})
    for level in there.tolist():
        for column, name in enumerate(judged.names()):
            rows = [judged.estimate("trajectory", means, (level, column))]
            if fitted is not None and level in curve:
                fit = judged.estimate("trajectory_fit", fitted, (curve[level], column))
                rows.append(fit._replace(n=rows[0].n))
            for row in rows:
                row = row._replace(subset=attribute, group=group, concept=name, template=f"{levels[level]:g}")
                yield row._replace(note=note)


def separation_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Negative against positive ends, for all scales together and each apart: a point for each age and group."""
    scales = judged.scales()
    if "age" not in judged.ordered or len(judged.finest.names) < 2 or not scales:
        return
    part, note = followed(judged, "age", options)
    for row in _cloud_rows(part, *map(list, zip(*scales, strict=True))):
        yield row._replace(subset="age", note=join((row.note, note)))
    for up, down in scales:  # numbers of one scale have metrics of their own, and the row's subset names the scale
        for row in _cloud_rows(part, [up], [down]):
            metric = row.metric.replace("valence_point", "scale_point").replace(".separation", ".scale_separation")
            yield row._replace(metric=metric, subset=judged.names()[up], note=join((row.note, note)))


def _cloud_rows(judged: Judged, positive: list[int], negative: list[int]) -> Iterator[Row]:
    """Every group's mean Δ of the positive and negative ends at each age, and the distances between these clouds."""
    groups, (ages, codes) = judged.finest, judged.levels("age")
    scores, clouds = judged.by_dimension(judged.delta), dict[str, Array]()
    for group in groups.names:
        at_age = [np.flatnonzero(groups.mask(group) & (codes == code)) for code in range(len(ages))]
        known = [(age, rows) for age, rows in zip(ages, at_age, strict=True) if len(rows)]
        if len(known) < 3:
            continue
        clouds[group] = np.array([[scores[rows][:, end].mean() for end in (positive, negative)] for _, rows in known])
        for (age, rows), ends in zip(known, clouds[group].tolist(), strict=True):
            for valence, value in zip((POSITIVE, NEGATIVE), ends, strict=True):
                row = Row("perception.valence_point", value, len(rows), judged.unit, group=group, concept=valence)
                yield row._replace(template=f"{age:g}")
    for first, second in combinations(clouds, 2):
        a, b = clouds[first], clouds[second]
        within = f"Mahalanobis distance of the groups' means over ages, in pooled standard deviations; {NO_INTERVAL}"
        row = Row("perception.separation", _mahalanobis(a, b), len(a) + len(b), "standard deviations", note=within)
        yield row._replace(group=first, against=second)


def _mahalanobis(a: Array, b: Array) -> float:
    """Distance of two clouds' means in their pooled covariance; NaN where that has no inverse."""
    pooled = ((len(a) - 1) * np.cov(a.T) + (len(b) - 1) * np.cov(b.T)) / (len(a) + len(b) - 2)
    off = a.mean(axis=0) - b.mean(axis=0)
    if np.linalg.matrix_rank(pooled) < len(off):
        return float("nan")
    return float(np.sqrt(off @ np.linalg.solve(pooled, off)))


def confound_rows(judged: Judged) -> Iterator[Row]:
    """Pearson's r of the curves of opposite dimensions over smiling, lighting, pose: do they oppose each other?"""
    scores, names = judged.by_dimension(judged.delta), judged.names()
    for attribute in [name for name in judged.ordered if name in CONFOUNDS]:
        levels, codes = judged.levels(attribute)
        curve, correlations = CellMeans(scores, codes, judged.people.codes, len(levels)).value, list[float]()
        n = len(levels)
        for up, down in judged.scales():
            row = Row("perception.opposites_r", None, n, "correlation", attribute, names[up], names[down], names[up])
            if n < 3 or (np.ptp(curve[:, [up, down]], axis=0) == 0).any():
                yield row._replace(note="fewer than three levels" if n < 3 else "a curve does not move")
                continue
            r = stats.pearsonr(curve[:, up], curve[:, down])
            low, high = r.confidence_interval(0.95) if n > 3 else (None, None)
            row = row._replace(value=float(r.statistic), low=low, high=high, p_value=float(r.pvalue))
            correlations.append(float(r.statistic))
            yield row._replace(note=f"over {n} levels")
        if correlations:
            row = Row("perception.opposites_r", float(np.mean(correlations)), n, "correlation", attribute, concept=MEAN)
            yield row._replace(note=f"mean over {len(correlations)} scales")


FEWEST_GROUPS = 3  # with two groups a departure says no more than their difference
DEGREES = {"slope": 1, "curvature": 2}
MEANINGS = {
    "slope": "rise of a straight line over the attribute's range",
    "curvature": "the two ends of a second-degree curve less its middle",
}


class Fitted(NamedTuple):
    """A row of every group and dimension with its slope or curvature, and what judges the groups' departures."""

    rows: list[list[Row]]  # `[group][dimension]`
    part: Part | None  # departures, `[groups, dimensions]`; None where seeds or too few groups are compared
    seeds: list[BySeed]  # departures within seeds, group by group; none where there are no seeds


def group_curve_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Slope and curvature of every finest group over age and smiling, and how far each departs from the others."""
    rng, fits = options.rng(), list[Fitted]()
    for attribute in [name for name in judged.ordered if name in GROUP_LEVELS]:
        part, note = followed(judged, attribute, options)
        groups = part.finest
        # Interactions tell the slopes of single attributes.
        if groups.attribute == EVERYONE or (judged.designed and groups.attribute not in CROSSED):
            continue
        curves = list[list[list[Row]]]()
        for metric in MEANINGS:
            if judged.designed:
                fits_of = fits_by_group(part, attribute, groups, DEGREES[metric])
                own = ((name, fit.values.mean(axis=0), fit.sets) for name, fit in fits_of.items())
                each = [part.dimension_rows(metric, values, n, name) for name, values, n in own]
                departures = [combined(list(fits_of.values()), weights) for weights in _others(len(fits_of))]
                made = Fitted(each, None, departures)
            else:
                made = _by_level(part, attribute, groups, metric, rng, options)
            subset, meaning = CROSSING.join((attribute, groups.attribute)), join((MEANINGS[metric], note))
            rows = [[row._replace(subset=subset, note=meaning) for row in own] for own in made.rows]
            if len(rows) > 1:
                fits.append(made._replace(rows=rows))
                curves.append(rows)
                yield from (row for own in rows for row in own)
        if len(curves) == len(MEANINGS) and FEWEST_GROUPS <= len(curves[0]) == len(curves[1]):
            yield from _cluster_rows(*curves)
    yield from _departures([fit for fit in fits if len(fit.rows) >= FEWEST_GROUPS], options)


def _cluster_rows(slopes: list[list[Row]], curvatures: list[list[Row]]) -> Iterator[Row]:
    """Which groups' curves are alike: Ward's clusters of their coefficients in all dimensions (Fig. S.4, S.5)."""
    numbers = np.array([[row.value for row in (*a, *b)] for a, b in zip(slopes, curvatures, strict=True)], np.float64)
    spread = numbers.std(axis=0)
    if not (known := spread > 0).any():
        return
    tree = linkage((numbers / np.where(known, spread, 1.0))[:, known], "ward")
    kept = 1 + int(np.argmax(np.diff(tree[:, 2], prepend=0.0)[1:]))  # mergers before the farthest step
    clusters = fcluster(tree, len(numbers) - kept, "maxclust")
    note = f"of {len(set(clusters))}, by slope and curvature in all dimensions; noise makes clusters too: describes"
    for rows, cluster in zip(slopes, clusters.tolist(), strict=True):
        row = rows[0]._replace(metric="perception.curve_cluster", unit="cluster", concept=None, note=note)
        yield row._replace(value=float(cluster))


def _departures(fits: list[Fitted], options: MeasureOptions) -> Iterator[Row]:
    count = sum(len(each) for fit in fits for each in fit.rows)
    by_seed = iter(judged_by_seed([part for fit in fits for part in fit.seeds], options))
    by_level = iter(judge([fit.part for fit in fits if fit.part is not None]))
    for fit in fits:
        verdicts = next(by_level) if fit.part is not None else None
        own = np.array([[row.value for row in each] for each in fit.rows], dtype=np.float64)
        for place, rows in enumerate(fit.rows):
            judged = next(by_seed) if verdicts is None else verdicts
            others = np.delete(own, place, axis=0).mean(axis=0)
            for column, row in enumerate(rows):
                note = f"{row.note}; less the mean of the other groups; interval and p hold for all {count} at once"
                row = row._replace(metric=f"{row.metric}_departure", note=note)
                if verdicts is None:
                    yield seed_row(row, fit.seeds[place], judged, column)
                else:
                    row = row._replace(value=float(own[place, column] - others[column]))
                    yield from comparison_at(judged, (place, column)).rows(row)


def _others(count: int) -> Array:
    """Each of several less the mean of the others."""
    return np.asarray(np.eye(count) * count / max(count - 1, 1) - 1 / max(count - 1, 1))


def _by_level(
    judged: Judged, attribute: str, groups: Groups, metric: str, rng: np.random.Generator, options: MeasureOptions
) -> Fitted:
    """From the means at every level; too few people at a level do not tell how far it spreads, and it is left out."""
    # A group's slope is a weighted sum of its means at the levels, hence the mean of its images' scores, each times
    # its weight. What all groups have in common, a line or a curve, is taken off first: it moves no departure.
    levels, codes = judged.levels(attribute)
    scores, degree = judged.by_dimension(judged.delta), DEGREES[metric]
    cells = np.where((groups.codes >= 0) & (codes >= 0), groups.codes * len(levels) + codes, -1)
    means = CellMeans(scores, cells, judged.people.codes, len(groups.names) * len(levels))
    weights, kept, rows = np.full(len(means.n) + 1, np.nan), list[int](), list[list[Row]]()
    for code, group in enumerate(groups.names):
        places = code * len(levels) + np.arange(len(levels))
        places = places[means.people[places] >= FEWEST]
        if len(places) > degree:
            known, reach = np.array(levels)[places % len(levels)], float(np.ptp(levels)) or 1.0
            fit = np.linalg.pinv(np.vander((known - known.mean()) / reach, degree + 1))[0] / (1 if degree == 1 else 4)
            n = int(means.n[places].sum())
            kept.append(code)
            rows.append(judged.dimension_rows(metric, fit @ means.value[places], n, group))
            weights[places] = fit * n / means.n[places]
    if len(kept) < FEWEST_GROUPS:
        return Fitted(rows, None, [])
    used = groups._replace(codes=np.where(np.isnan(weights[cells]), -1, groups.codes)).kept(kept)
    left = weights[cells][:, None] * _without_common(scores, np.array(levels)[codes], used.codes, degree)
    others, people = _others(len(kept)), judged.people
    return Fitted(rows, compare_groups(left, used, people, rng, contrasts=others, shuffles=options.shuffles), [])


def _without_common(scores: Array, places: Array, groups: Codes, degree: int) -> Array:
    """What the groups' own means and one line or curve for all of them leave of the scores."""
    inside = groups >= 0
    scaled = (places - places[inside].mean()) / (np.ptp(places[inside]) or 1.0)
    fit = np.column_stack([groups[:, None] == np.arange(groups.max() + 1), np.vander(scaled, degree + 1)[:, :-1]])
    solution = np.linalg.lstsq(fit[inside], scores[inside], rcond=None)[0]
    return np.asarray(scores - fit @ solution)
