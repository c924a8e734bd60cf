"""Curves of crossed groups: does one group's curve over age or smiling stand out from those of the others?

A slope is the rise of a straight line over the attribute's whole range. A curvature is how far the two ends of a
second-degree curve lie above its middle: above 0 it sags, below 0 it arches. A departure is a group's slope or
curvature less the mean of the other groups'. All departures are one family.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.comparison import FEWEST, Groups, Part, compare_groups, comparison_at, judge
from beholder.comparison.groups import CROSSING
from beholder.core.results import Row
from beholder.metrics.clustered import CellMeans
from beholder.metrics.matched import BySeed, combined
from beholder.studies.perception.curves import GROUP_LEVELS, followed
from beholder.studies.perception.design import bends_by_group, judged_by_seed, rises_by_group, seed_row
from beholder.studies.perception.scores import CROSSED, EVERYONE, Array, Judged, finest, levels_of, ordered_attributes
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

FEWEST_GROUPS = 3
"""With two groups a departure says no more than their difference."""
MEANINGS = {
    "slope": "rise of a straight line over the attribute's range",
    "curvature": "the two ends of a second-degree curve less its middle",
}
DEGREES = {"slope": 1, "curvature": 2}


class Fitted(NamedTuple):
    """A row of every group and dimension with its slope or curvature, and what judges the groups' departures."""

    rows: list[list[Row]]
    """`[group][dimension]`"""
    part: Part | None
    """Departures, `[groups, dimensions]`; None where seeds or too few groups are compared."""
    seeds: list[BySeed]
    """Departures within seeds, group by group; none where there are no seeds."""


def group_curve_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Slope and curvature of every finest group over age and smiling, and how far each departs from the others."""
    rng, fits = options.rng(), list[Fitted]()
    for attribute in ordered_attributes(judged.images):
        part, note = followed(judged, attribute, options)
        groups = finest(part.images)
        if attribute not in GROUP_LEVELS or groups.attribute == EVERYONE:
            continue
        if judged.designed and groups.attribute not in CROSSED:
            continue  # interactions tell the slopes of single attributes
        for metric in MEANINGS:
            made = _by_seed(part, attribute, groups, metric) if judged.designed else None
            made = made or _by_level(part, attribute, groups, metric, rng, options)
            subset, told = CROSSING.join((attribute, groups.attribute)), join((MEANINGS[metric], note))
            rows = [[row._replace(subset=subset, note=told) for row in each] for each in made.rows]
            if len(rows) > 1:
                fits.append(made._replace(rows=rows))
                yield from (row for each in rows for row in each)
    yield from _departures([fit for fit in fits if len(fit.rows) >= FEWEST_GROUPS], options)


def _departures(fits: list[Fitted], options: MeasureOptions) -> Iterator[Row]:
    """How far each group is from the mean of the others, with verdicts."""
    count = sum(len(each) for fit in fits for each in fit.rows)
    by_seed = iter(judged_by_seed([part for fit in fits for part in fit.seeds], options))
    by_level = iter(judge([fit.part for fit in fits if fit.part is not None]))
    for fit in fits:
        verdicts = next(by_level) if fit.part is not None else None
        own = np.array([[row.value for row in each] for each in fit.rows], dtype=np.float64)
        for place, rows in enumerate(fit.rows):
            told = next(by_seed) if verdicts is None else verdicts
            others = np.delete(own, place, axis=0).mean(axis=0)
            for column, row in enumerate(rows):
                note = f"{row.note}; less the mean of the other groups; interval and p hold for all {count} at once"
                row = row._replace(metric=f"{row.metric}_departure", note=note)
                if verdicts is None:
                    yield seed_row(row, fit.seeds[place], told, column)
                else:
                    row = row._replace(value=float(own[place, column] - others[column]))
                    yield from comparison_at(told, (place, column)).rows(row)


def _others(count: int) -> Array:
    """Each of several less the mean of the others."""
    return np.asarray(np.eye(count) * count / max(count - 1, 1) - 1 / max(count - 1, 1))


def _rows(judged: Judged, metric: str, group: str, values: Array, n: int) -> list[Row]:
    return [
        Row(f"perception.{metric}", float(value), n, judged.unit, group=group, concept=name)
        for name, value in zip(judged.names(), values, strict=True)
    ]


def _by_seed(judged: Judged, attribute: str, groups: Groups, metric: str) -> Fitted:
    """From matched sets, seed by seed."""
    fit = rises_by_group if metric == "slope" else bends_by_group
    parts = fit(judged.images, attribute, groups, judged.by_dimension(judged.delta))
    rows = [_rows(judged, metric, group, part.values.mean(axis=0), part.sets) for group, part in parts.items()]
    return Fitted(rows, None, [combined(list(parts.values()), weights) for weights in _others(len(parts))])


def _by_level(
    judged: Judged, attribute: str, groups: Groups, metric: str, rng: np.random.Generator, options: MeasureOptions
) -> Fitted:
    """From the means at every level; too few people at a level do not tell how far it spreads, and it is left out.

    A group's slope is a weighted sum of its means at the levels, hence the mean of its images' scores, each times its
    weight. What all groups have in common, a line or a curve, is taken off first: it moves no departure.
    """
    levels, codes = levels_of(judged.images, attribute)
    scores, degree = judged.by_dimension(judged.delta), DEGREES[metric]
    cells = np.where((groups.codes >= 0) & (codes >= 0), groups.codes * len(levels) + codes, -1)
    means = CellMeans(scores, cells, judged.people.codes, len(groups.names) * len(levels))
    weights, kept, rows = np.full(len(means.n) + 1, np.nan), list[int](), list[list[Row]]()
    for code, group in enumerate(groups.names):
        places = code * len(levels) + np.arange(len(levels))
        places = places[means.people[places] >= FEWEST]
        if len(places) > degree:
            fit = _fit_weights(np.array(levels)[places % len(levels)], degree, float(np.ptp(levels)))
            n = int(means.n[places].sum())
            kept.append(code)
            rows.append(_rows(judged, metric, group, fit @ means.value[places], n))
            weights[places] = fit * n / means.n[places]
    if len(kept) < FEWEST_GROUPS:
        return Fitted(rows, None, [])
    used = groups._replace(codes=np.where(np.isnan(weights[cells]), -1, groups.codes)).kept(kept)
    left = _without_common(scores, np.array(levels)[codes], used.codes, degree)
    compared = compare_groups(
        weights[cells][:, None] * left,
        used,
        judged.people,
        rng,
        contrasts=_others(len(kept)),
        shuffles=options.shuffles,
    )
    return Fitted(rows, compared, [])


def _fit_weights(levels: Array, degree: int, reach: float) -> Array:
    """What turns the means at these levels into a slope over `reach` (degree 1), or into a curvature (degree 2)."""
    places = (levels - levels.mean()) / (reach or 1.0)
    leading = np.linalg.pinv(np.vander(places, degree + 1))[0]
    return np.asarray(leading if degree == 1 else leading / 4)


def _without_common(scores: Array, places: Array, groups: npt.NDArray[np.intp], degree: int) -> Array:
    """What the groups' own means and one line or curve for all of them leave of the scores."""
    inside = groups >= 0
    scaled = (places - places[inside].mean()) / (np.ptp(places[inside]) or 1.0)
    fit = np.column_stack([groups[:, None] == np.arange(groups.max() + 1), np.vander(scaled, degree + 1)[:, :-1]])
    solution = np.linalg.lstsq(fit[inside], scores[inside], rcond=None)[0]
    return np.asarray(scores - fit @ solution)
