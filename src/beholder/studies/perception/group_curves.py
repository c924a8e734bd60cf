"""Curves of crossed groups: does one group's curve over age or smiling stand out from those of the others?

A slope is the rise of a straight line over the attribute's whole range. A curvature is how far the two ends of a
second-degree curve lie above its middle: above 0 it sags, below 0 it arches. A departure is a group's slope or
curvature less the mean of the other groups'. Bounds hold for all groups and dimensions of one attribute at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.clustered import CellMeans, Spread
from beholder.metrics.matched import combined, seed_means
from beholder.studies.perception.curves import GROUP_LEVELS, followed
from beholder.studies.perception.design import bends_by_group, rises_by_group
from beholder.studies.perception.families import family
from beholder.studies.perception.scores import (
    CROSSED,
    CROSSING,
    EVERYONE,
    Array,
    Groups,
    Judged,
    finest,
    levels_of,
    ordered_attributes,
)
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

FEWEST_GROUPS = 3
"""With two groups a departure says no more than their difference."""
MEANINGS = {
    "slope": "rise of a straight line over the attribute's range",
    "curvature": "the two ends of a second-degree curve less its middle",
}


class Fitted(NamedTuple):
    """Slopes and curvatures of groups, and how sums of them vary: `sums(weights[n_sums, n_numbers])`."""

    names: list[tuple[str, str]]
    """`slope` or `curvature`, and the group."""
    counts: list[int]
    sums: Callable[[Array], tuple[Array, Spread]]


def group_curve_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Slope and curvature of every finest group over age and smiling, and how far each departs from the others."""
    for attribute in ordered_attributes(judged.images):
        part, note = followed(judged, attribute, options)
        groups = finest(part.images)
        if attribute not in GROUP_LEVELS or groups.attribute == EVERYONE:
            continue
        if judged.designed and groups.attribute not in CROSSED:
            continue  # interactions tell the slopes of single attributes
        fitted = (_by_seed if judged.designed else _by_level)(part, attribute, groups)
        for row in _fitted_rows(part, fitted, options):
            yield row._replace(subset=CROSSING.join((attribute, groups.attribute)), note=join((row.note, note)))


def _by_seed(judged: Judged, attribute: str, groups: Groups) -> Fitted:
    """From matched sets, seed by seed."""
    scores = judged.by_dimension(judged.delta)
    parts = {
        (metric, group): part
        for metric, fit in (("slope", rises_by_group), ("curvature", bends_by_group))
        for group, part in fit(judged.images, attribute, groups, scores).items()
    }

    def sums(weights: Array) -> tuple[Array, Spread]:
        return seed_means([combined(list(parts.values()), row) for row in weights])

    return Fitted(list(parts), [part.sets for part in parts.values()], sums)


def _by_level(judged: Judged, attribute: str, groups: Groups) -> Fitted:
    """From the means at every level; too few people at a level do not tell how far it spreads, and it is left out."""
    levels, codes = levels_of(judged.images, attribute)
    cells = np.where((groups.codes >= 0) & (codes >= 0), groups.codes * len(levels) + codes, -1)
    means = CellMeans(judged.by_dimension(judged.delta), cells, judged.clusters, len(groups.names) * len(levels))
    rows, names, counts = [], [], []
    for metric, degree in (("slope", 1), ("curvature", 2)):
        for code, group in enumerate(groups.names):
            places = code * len(levels) + np.arange(len(levels))
            enough = np.flatnonzero(means.people[places] >= FEWEST)
            if len(enough) > degree:
                weights = np.zeros(len(means.n))
                weights[places[enough]] = _fit_weights(np.array(levels)[enough], degree, float(np.ptp(levels)))
                rows.append(weights)
                names.append((metric, group))
                counts.append(int(means.n[places[enough]].sum()))
    of_groups = np.array(rows)

    def sums(weights: Array) -> tuple[Array, Spread]:
        return means.combined(weights @ of_groups).value, means.spread(weights @ of_groups)

    return Fitted(names, counts, sums)


def _fit_weights(levels: Array, degree: int, reach: float) -> Array:
    """What turns the means at these levels into a slope over `reach` (degree 1), or into a curvature (degree 2)."""
    places = (levels - levels.mean()) / (reach or 1.0)
    leading = np.linalg.pinv(np.vander(places, degree + 1))[0]
    return np.asarray(leading if degree == 1 else leading / 4)


def _fitted_rows(judged: Judged, fitted: Fitted, options: MeasureOptions) -> Iterator[Row]:
    """The numbers themselves, then all departures as one family: a reader looks for the widest of them."""
    if len({group for _, group in fitted.names}) > 1:
        yield from _family_rows(judged, fitted, fitted.names, np.eye(len(fitted.names)), options)
    departing = [name for name in fitted.names if len(_others(fitted.names, name)) >= FEWEST_GROUPS - 1]
    if departing:
        weights = np.eye(len(fitted.names))[[fitted.names.index(name) for name in departing]]
        for row, name in zip(weights, departing, strict=True):
            others = _others(fitted.names, name)
            row[others] = -1 / len(others)
        named = [(f"{metric}_departure", group) for metric, group in departing]
        yield from _family_rows(judged, fitted, named, weights, options)


def _others(names: list[tuple[str, str]], name: tuple[str, str]) -> list[int]:
    """The same number of the other groups."""
    return [place for place, other in enumerate(names) if other[0] == name[0] and other != name]


def _family_rows(
    judged: Judged, fitted: Fitted, names: list[tuple[str, str]], weights: Array, options: MeasureOptions
) -> Iterator[Row]:
    together = family(*fitted.sums(weights), options.rng())
    counts, dimensions = dict(zip(fitted.names, fitted.counts, strict=True)), judged.names()
    for place, (metric, group) in enumerate(names):
        plain = metric.removesuffix("_departure")
        less = ", less the mean of the other groups" if plain != metric else ""
        note = f"{MEANINGS[plain]}{less}; {together.how}"
        for column, name in enumerate(dimensions):
            row = Row(f"perception.{metric}", None, counts[plain, group], judged.unit, group=group, concept=name)
            yield together.row(place * len(dimensions) + column, row._replace(note=note))
