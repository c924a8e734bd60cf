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
    """A slope or curvature of every group, and how sums of them vary: `sums(weights[n_sums, n_groups])`."""

    groups: list[str]
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
        for metric in MEANINGS:
            fitted = (_by_seed if judged.designed else _by_level)(part, attribute, groups, metric)
            for row in _fitted_rows(part, metric, fitted, options):
                subset = CROSSING.join((attribute, groups.attribute))
                yield row._replace(subset=subset, note=join((row.note, note)))


def _by_seed(judged: Judged, attribute: str, groups: Groups, metric: str) -> Fitted:
    """From matched sets, seed by seed."""
    fit = rises_by_group if metric == "slope" else bends_by_group
    parts = fit(judged.images, attribute, groups, judged.by_dimension(judged.delta))

    def sums(weights: Array) -> tuple[Array, Spread]:
        return seed_means([combined(list(parts.values()), row) for row in weights])

    return Fitted(list(parts), [part.sets for part in parts.values()], sums)


def _by_level(judged: Judged, attribute: str, groups: Groups, metric: str) -> Fitted:
    """From the means at every level; a level with one person does not tell how far it spreads and is left out."""
    levels, codes = levels_of(judged.images, attribute)
    cells = np.where((groups.codes >= 0) & (codes >= 0), groups.codes * len(levels) + codes, -1)
    means = CellMeans(judged.by_dimension(judged.delta), cells, judged.clusters, len(groups.names) * len(levels))
    rows, names, counts = [], [], []
    for code, name in enumerate(groups.names):
        places = code * len(levels) + np.arange(len(levels))
        several = np.flatnonzero(means.people[places] > 1)
        if len(several) > (1 if metric == "slope" else 2):
            weights = np.zeros(len(means.n))
            weights[places[several]] = _fit_weights(np.array(levels)[several], metric, float(np.ptp(levels)))
            rows.append(weights)
            names.append(name)
            counts.append(int(means.n[places[several]].sum()))
    of_groups = np.array(rows)

    def sums(weights: Array) -> tuple[Array, Spread]:
        return means.combined(weights @ of_groups).value, means.spread(weights @ of_groups)

    return Fitted(names, counts, sums)


def _fit_weights(levels: Array, metric: str, reach: float) -> Array:
    """What turns the means at these levels into a slope over `reach`, or into a curvature."""
    places = (levels - levels.mean()) / (reach or 1.0)
    degree = 1 if metric == "slope" else 2
    coefficients = np.linalg.pinv(np.vander(places, degree + 1))
    return np.asarray(coefficients[0] if degree == 1 else coefficients[0] / 4)


def _fitted_rows(judged: Judged, metric: str, fitted: Fitted, options: MeasureOptions) -> Iterator[Row]:
    count, names = len(fitted.groups), judged.names()
    if count < 2:
        return
    kinds = [(metric, np.eye(count))]
    if count >= FEWEST_GROUPS:
        others = (np.ones((count, count)) - np.eye(count)) / (count - 1)
        kinds.append((f"{metric}_departure", np.eye(count) - others))
    for kind, weights in kinds:
        value, spread = fitted.sums(weights)
        together = family(value, spread, options.rng())
        less = ", less the mean of the other groups" if kind != metric else ""
        note = f"{MEANINGS[metric]}{less}; {together.how}"
        for place, group in enumerate(fitted.groups):
            for column, name in enumerate(names):
                row = Row(f"perception.{kind}", None, fitted.counts[place], judged.unit, group=group, concept=name)
                yield together.row(place * len(names) + column, row._replace(note=note))
