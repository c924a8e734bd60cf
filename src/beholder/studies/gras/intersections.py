"""Intersections of gender, race and age: whom positive traits favour, and what single attributes do not explain.

A cell may stand out only because its gender and its race do. So each is compared with the mean of all, and with what
its attributes add up to (a least-squares fit without interactions). All cells, in both ways, are one family.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.comparison import (
    Groups,
    Part,
    People,
    Strata,
    additive_strata,
    compare_groups,
    crossing,
    group_by,
    judge,
    strata_of,
)
from beholder.comparison.family import Judged
from beholder.comparison.means import units_of
from beholder.comparison.strata import no_strata
from beholder.metrics.pooling import Pooled, partial_pooling
from beholder.studies.gras.groups import NOTHING, WITHIN, Answers, Array

CROSSED = ("gender", "race", "age")
"""Attributes whose intersections are measured."""


class Intersections(NamedTuple):
    """Cells of several attributes at once, with how much each is favoured."""

    names: list[str]
    size: npt.NDArray[np.int_]
    """Images."""
    raw: Array
    pooled: Pooled
    """Small cells borrow from all."""
    strata: Strata
    """What else the cells are compared within."""
    from_mean: Judged
    beyond: Judged | None
    """Beyond what the single attributes add up to; None where nothing is left over."""
    departures: Array
    """How far cells lie from what their attributes add up to, whatever the strata."""
    spread: float
    """Standard deviation of the true departures; 0: no more than chance."""


def intersections(answers: Answers, people: People, rng: np.random.Generator, shuffles: int) -> Intersections | None:
    """Gender × race × age (those that are known): positive minus negative traits."""
    images = answers.images
    known = [name for name in CROSSED if name in images.columns and images[name].drop_nulls().len()]
    if len(known) < 2:
        return None
    cells, *others = (group_by(images, (name,)) for name in known)
    for other in others:
        cells = crossing(cells, other)
    favour = answers.asked(cells.codes >= 0).favour()
    cells = cells._replace(codes=np.where(np.isnan(favour), -1, cells.codes))
    cells = cells.kept([place for place, size in enumerate(cells.sizes(people)) if size > 1])
    values = favour[cells.codes >= 0]
    if len(cells.names) < 4 or len(people.rows(cells.codes >= 0)) <= len(cells.names) or np.ptp(values) < NOTHING:
        return None
    return _compared(_Cells(answers, cells, people, favour), known, rng, shuffles)


class _Cells(NamedTuple):
    answers: Answers
    groups: Groups
    people: People
    favour: Array

    def departures(self, labels: list[str], rng: np.random.Generator, shuffles: int) -> Part:
        """How far the cells lie from what these labels add up to."""
        strata = additive_strata(self.answers.images, self.groups, labels)
        return compare_groups(
            self.favour,
            self.groups,
            self.people,
            rng,
            strata=strata,
            departures=True,
            shuffles=shuffles,
            bounds=(-1.0, 1.0),
        )


def _compared(cells: _Cells, known: list[str], rng: np.random.Generator, shuffles: int) -> Intersections:
    groups, people = cells.groups, cells.people
    units = units_of(cells.favour[:, None], groups, people, no_strata(len(cells.favour)))
    size = np.bincount(units.groups).astype(np.float64)
    raw = np.bincount(units.groups, weights=units.values[:, 0]) / size
    within = float(((units.values[:, 0] - raw[units.groups]) ** 2).sum() / max(len(units.groups) - len(size), 1))
    strata = strata_of(cells.answers.images, groups, WITHIN, people)
    others = list(strata.labels)
    alone = cells.departures(known, rng, 0)
    design = additive_strata(cells.answers.images, groups, known).design[groups.codes >= 0]
    free = len(size) - 1 - int(np.linalg.matrix_rank(design - design.mean(axis=0)))
    parts = [cells.departures(others, rng, shuffles)]
    parts += [cells.departures([*known, *others], rng, shuffles)] if free else []
    from_mean, *beyond = judge(parts)
    off = np.asarray(alone.value[:, 0], dtype=np.float64)
    spread = np.sqrt(max(0.0, float((size * off**2).sum()) - free * within) / size.sum())
    images = np.bincount(groups.codes[groups.codes >= 0], minlength=len(size))
    pooled = partial_pooling(raw, np.sqrt(max(within, NOTHING**2) / size))
    judged = beyond[0] if beyond else None
    return Intersections(groups.names, images, raw, pooled, strata, from_mean, judged, off, float(spread))
