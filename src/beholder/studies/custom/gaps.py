"""Where own prompts differ between groups: gaps, slopes and intersections of all prompts and attributes, one family.

Groups are compared within the other attributes of `--by` and the labels of `--within`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison import (
    DIFFERENCE,
    Comparison,
    Groups,
    Part,
    Strata,
    additive_strata,
    compare_groups,
    compare_slopes,
    comparison_at,
    each_stratum,
    groups_of,
    judge,
    people_of,
    strata_of,
)
from beholder.comparison.family import Judged
from beholder.comparison.groups import COLUMNS, REST, crossings
from beholder.core.errors import UnknownName
from beholder.core.results import Row
from beholder.core.tables import column_in
from beholder.datasets.dataset import KEYS
from beholder.datasets.selection import NUMBERS
from beholder.metrics.group_tests import verdict
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions, Metric

Array = npt.NDArray[np.float64]
WHAT = {
    "custom.probability": "share of belief on a prompt",
    "custom.p_yes": "P(yes) of a prompt",
    "custom.presence": "presence of a concept",
    "custom.association": "share of belief on the correct prompt",
    "custom.association_top1": "share of images whose correct prompt comes first",
}
# How the metrics of differences begin, by what differs
DIFFERENCES = {base: "custom." if base == "custom.probability" else f"{base}_" for base in WHAT}
KINDS = {
    "gap": "one group less another; 0: alike. The two groups farthest apart, and each against everyone else",
    "slope": "its change with one more of a number, such as a year of age; 0: none",
    "interaction": "how far an intersection of two attributes departs from what they add up to; 0: not",
    "equivalence": "the smallest δ within which all groups are shown to lie (needs --delta)",
}
BALANCE = "custom.balance"
MOST_UNBALANCED = 3  # labels of which the balance is told for each attribute
TOGETHER = "interval and p hold for all prompts, groups and attributes together"


def gap_metrics() -> Iterator[Metric]:
    """What is said about differences, of everything that is measured."""
    for base, start in DIFFERENCES.items():
        for ending, meaning in KINDS.items():
            name, landmark = start + ending, None if ending == "equivalence" else 0.0
            yield Metric(name, "prompts", PROBABILITY, f"{WHAT[base]}: {meaning}", landmark, paired=ending == "gap")
    meaning = "share of a group's people who have a value of another label that is spread unequally over the groups"
    yield Metric(BALANCE, "prompts", PROBABILITY, meaning, counts="people")


class Column(NamedTuple):
    """What is compared: a metric of one prompt (or level), with a value for each image, NaN where there is none."""

    metric: str
    concept: str
    level: str
    values: Array

    def row(self, ending: str, value: float, n: int, subset: str) -> Row:
        """A row about how it differs: `gap`, or what stands in its place."""
        metric = DIFFERENCES[self.metric] + ending
        return Row(metric, value, n, PROBABILITY, subset=subset, concept=self.concept, template=self.level)


# A part of the family, and the rows that it becomes when all are judged
Compared = tuple[Part, Callable[[Judged], Iterator[Row]]]


class Family:
    """Everything that is compared, and by what."""

    def __init__(self, columns: Sequence[Column], images: pl.DataFrame, by: Sequence[str], options: MeasureOptions):
        self.columns, self.images, self.options = columns, images, options
        self.values = np.stack([column.values for column in columns], axis=1)
        self.people = people_of(images, options.person)
        self.within = [column_in(images, name) for name in options.within]
        for name in self.within:
            if name not in images.columns:
                raise UnknownName("column for --within", name, [each for each in images.columns if each not in KEYS])
        self._rng = options.rng()
        every = groups_of(images, list(dict.fromkeys([*(column_in(images, name) for name in by), *self.within])))
        self._labels = pl.DataFrame({each.attribute: each.labels() for each in every})
        self.by = [each.attribute for each in every if each.attribute not in self.within]
        scored = np.asarray(~np.isnan(self.values).all(axis=1))
        whole = [each for each in every if each.attribute in self.by]
        self.groups = [each.large(self.people, scored) for each in whole]
        self.numbers = [each for each in whole if each.numbers is not None]

    def rows(self) -> Iterator[Row]:
        """Gaps, slopes and intersections, judged together; and labels that are spread unequally over the groups."""
        compared = [*self._gaps(), *self._slopes(), *self._intersections()]
        for (_, rows), judged in zip(compared, judge([part for part, _ in compared]), strict=True):
            yield from rows(judged)
        yield from self._balance()

    def _gaps(self) -> Iterator[Compared]:
        """Every two groups, and with more than two each against all others; then every two within each stratum."""
        scale = {"shuffles": self.options.shuffles, "bounds": (0.0, 1.0)}
        for groups in self.groups:
            if len(groups.names) < 2:
                continue
            pairs, rest = groups.pair_weights(), groups.rest_weights(self.people)
            weights = np.concatenate([pairs, rest]) if len(groups.names) > 2 else pairs
            strata = strata_of(self._labels, groups, [*self.within, *self.by], self.people)
            own = {"strata": strata, "contrasts": weights, **scale}
            part = compare_groups(self.values, groups, self.people, self._rng, **own)  # type: ignore[arg-type]
            yield part, partial(self._gap_rows, groups, strata)
            inner = strata_of(self._labels, groups, self.within, self.people)
            parts = each_stratum(self.values, groups, self.people, inner, self._rng, **scale)  # type: ignore[arg-type]
            for name, one in parts.items():
                inside = inner.crossed.mask(name) & (groups.codes >= 0) if inner.crossed else groups.codes >= 0
                yield one, partial(self._inner, groups, f"{inner.variant}: {name}", inside)

    def _comparisons(self, judged: Judged, groups: Groups, column: int) -> list[Comparison]:
        """The two groups farthest apart (of those that differ, if any do), and each group against everyone else."""
        pairs = [(groups.names[i], groups.names[j]) for i, j in groups.pairs()]
        ends = [*pairs, *((name, REST) for name in groups.names)][: len(judged.value)]
        all_of = [comparison_at(judged, (place, column), *ends[place]) for place in range(len(ends))]
        widest = max(all_of[: len(pairs)], key=lambda one: (one.verdict == DIFFERENCE, abs(np.nan_to_num(one.value))))
        return [widest.upward(), *all_of[len(pairs) :]]

    def _gap_rows(self, groups: Groups, strata: Strata, judged: Judged) -> Iterator[Row]:
        several = f"the widest of {len(groups.pairs())} pairs" if len(groups.names) > 2 else None
        for k, column in enumerate(self.columns):
            there = ~np.isnan(column.values)
            inside = {name: column.values[there & groups.mask(name)] for name in groups.names}
            if min(map(len, inside.values())) == 0:
                continue
            n = sum(map(len, inside.values()))
            for number, one in enumerate(self._comparisons(judged, groups, k)):
                others = [name for name in inside if name == one.against or (one.against == REST and name != one.group)]
                rest = np.concatenate([inside[name] for name in others]).mean()
                row = column.row("gap", float(inside[str(one.group)].mean() - rest), n, groups.attribute)
                note = join((several if number == 0 else None, TOGETHER))
                yield from one.rows(row._replace(note=note), strata, least=-1.0, most=1.0)
            if self.options.delta is not None:
                yield self._alike(column.row("equivalence", 0.0, n, groups.attribute), judged, groups, k)

    def _inner(self, groups: Groups, variant: str, inside: npt.NDArray[np.bool_], judged: Judged) -> Iterator[Row]:
        """What differs within one stratum."""
        for k, column in enumerate(self.columns):
            one = self._comparisons(judged, groups, k)[0]
            n = int((inside & ~np.isnan(column.values)).sum())
            row = column.row("gap", one.value, n, groups.attribute)
            if np.isfinite(one.value):
                yield one.on(row._replace(variant=variant, note=TOGETHER), least=-1.0, most=1.0)

    def _alike(self, row: Row, judged: Judged, groups: Groups, column: int) -> Row:
        """The smallest δ within which the bounds of all pairs lie."""
        pairs = slice(len(groups.pairs()))
        bound = np.abs(np.stack([judged.low[pairs, column], judged.high[pairs, column]])).max()
        delta, differs = self.options.delta or 0.0, judged.found[pairs, column].any()
        said = verdict(0.0 if differs else 1.0, 0.0 if bound <= delta else 1.0)
        return row._replace(value=min(1.0, float(bound)), delta=delta, equivalence=said, note=TOGETHER)

    def _slopes(self) -> Iterator[Compared]:
        """How much each prompt rises with one more of an attribute."""
        for groups in self.numbers:
            others = [name for name in (*self.within, *self.by) if name != groups.attribute]
            strata, numbers = additive_strata(self._labels, groups, others), np.asarray(groups.numbers)
            own = {"strata": strata, "shuffles": self.options.shuffles}
            part = compare_slopes(self.values, numbers, self.people, self._rng, **own)  # type: ignore[arg-type]
            yield part, partial(self._slope_rows, groups, strata)

    def _slope_rows(self, groups: Groups, strata: Strata, judged: Judged) -> Iterator[Row]:
        for k, column in enumerate(self.columns):
            numbers, one = np.asarray(groups.numbers), comparison_at(judged, (0, k))
            known = ~np.isnan(column.values + numbers)
            numbers = numbers[known]
            if not np.isfinite(one.value):
                continue
            away = numbers - numbers.mean()
            row = column.row("slope", float(away @ column.values[known] / (away @ away)), len(away), groups.attribute)
            span = f"from {numbers.min():g} to {numbers.max():g}"
            note = f"change with one more of {groups.attribute}, {span}; {TOGETHER}"
            most = 1 / float(np.ptp(numbers))
            yield from one.rows(row._replace(note=note), strata, least=-most, most=most)

    def _intersections(self) -> Iterator[Compared]:
        """How far each intersection departs from what its two attributes add up to."""
        scored = np.asarray(~np.isnan(self.values).all(axis=1))
        for first, second, cells in crossings([each for each in self.groups if len(each.names) > 1]):
            cells = cells.large(self.people, scored)
            if len(cells.names) < 4:
                continue
            strata = additive_strata(self._labels, cells, [first.attribute, second.attribute, *self.within])
            own = {"strata": strata, "departures": True, "shuffles": self.options.shuffles}
            part = compare_groups(self.values, cells, self.people, self._rng, **own)  # type: ignore[arg-type]
            yield part, partial(self._intersection_rows, cells)

    def _intersection_rows(self, cells: Groups, judged: Judged) -> Iterator[Row]:
        for k, column in enumerate(self.columns):
            for place, name in enumerate(cells.names):
                n = int((cells.mask(place) & ~np.isnan(column.values)).sum())
                one = comparison_at(judged, (place, k), name)
                if np.isfinite(one.value):
                    row = column.row("interaction", one.value, n, cells.attribute)._replace(note=TOGETHER)
                    yield one.on(row, least=-1.0, most=1.0)

    def _balance(self) -> Iterator[Row]:
        """Other labels that groups differ in, and that they were not compared within."""
        used = {*KEYS, *COLUMNS, *self._labels.columns, self.people.column}
        others = [name for name in self.images.columns if name not in used and not name.endswith(NUMBERS)]
        for groups in self.groups:
            if len(groups.names) < 2:
                continue
            sizes = dict(zip(groups.names, groups.sizes(self.people), strict=True))
            for found in groups.balance(self.images, self.people, others)[:MOST_UNBALANCED]:
                for value, shares in found.shares.items():
                    for group, share in shares.items():
                        row = Row(BALANCE, share, sizes[group], PROBABILITY, subset=groups.attribute, group=group)
                        yield row._replace(concept=found.column, template=value)
