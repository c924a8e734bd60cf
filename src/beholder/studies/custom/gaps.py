"""Where own prompts differ between groups: gaps, slopes, intersections, each judged among all of them.

A prompt differs by an attribute if its corrected p-value is at most 0.05 and its interval leaves out 0. Both hold for
all prompts, all pairs of groups and all attributes together, so that noise seldom says anything at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.results import Row
from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.contrasts import Contrasts, group_contrasts, interactions, pairs_and_rests, slopes
from beholder.metrics.equivalence import DIFFERENCE, UNDECIDED, verdict, welch_equivalence
from beholder.metrics.group_gaps import clustered_moments
from beholder.metrics.multiplicity import ALPHA, holm, shuffles_for
from beholder.studies.custom.groups import Groups, crossings
from beholder.studies.rows import PROBABILITY, join
from beholder.studies.study import MeasureOptions, Metric

Array = npt.NDArray[np.float64]
REST = "everyone else"
GAPS = {
    "custom.probability": "custom.gap",
    "custom.p_yes": "custom.p_yes_gap",
    "custom.presence": "custom.presence_gap",
    "custom.association": "custom.association_gap",
    "custom.association_top1": "custom.association_top1_gap",
}
"""The metric of a gap, by what differs."""
WHAT = {
    "custom.probability": "share of belief on a prompt",
    "custom.p_yes": "P(yes) of a prompt",
    "custom.presence": "presence of a concept",
    "custom.association": "share of belief on the correct prompt",
    "custom.association_top1": "share of images whose correct prompt comes first",
}
KINDS = {
    "gap": "one group less another; 0: alike. The highest against the lowest group, and each against everyone else; "
    "chance: the highest less the lowest after shuffling people",
    "slope": "its change with one more of a number, such as a year of age; 0: none",
    "interaction": "how far an intersection of two attributes departs from what they add up to, partly pooled; 0: not",
    "equivalence": "the smallest δ within which all groups are shown to lie (needs --delta)",
}
TOGETHER = "interval and p hold for all prompts, groups and attributes together"


def gap_metrics() -> Iterator[Metric]:
    """What is said about differences, of everything that is measured."""
    for base, gap in GAPS.items():
        for ending, meaning in KINDS.items():
            name, landmark = gap.removesuffix("gap") + ending, None if ending == "equivalence" else 0.0
            yield Metric(name, "prompts", PROBABILITY, f"{WHAT[base]}: {meaning}", landmark, paired=ending == "gap")


class Column(NamedTuple):
    """What is compared: a metric of one prompt (or level), with a value for each image, NaN where there is none."""

    metric: str
    concept: str
    level: str
    values: Array

    def row(self, ending: str, value: float, n: int, subset: str) -> Row:
        """A row about how it differs: `gap`, or what stands in its place."""
        metric = GAPS[self.metric].removesuffix("gap") + ending
        return Row(metric, value, n, PROBABILITY, subset=subset, concept=self.concept, template=self.level)


class Family(NamedTuple):
    """Everything that is compared, and by what."""

    columns: Sequence[Column]
    values: Array
    people: npt.NDArray[np.str_]
    scored: npt.NDArray[np.bool_]
    groups: list[Groups]
    crossed: list[tuple[Groups, Groups, Groups]]
    tests: int
    """Attributes, slopes and crossings: each is judged by itself, and p-values are multiplied by their number."""
    shuffles: int


def family_of(columns: Sequence[Column], groups: Sequence[Groups], people: npt.NDArray[np.str_]) -> Family | None:
    """What can be compared; None where there is nothing."""
    if not columns or not groups:
        return None
    values = np.stack([column.values for column in columns], axis=1)
    scored = np.asarray(~np.isnan(values).all(axis=1))
    large = [each.large(people, scored) for each in groups]
    crossed = [
        (first, second, whole)
        for first, second, cells in crossings(large)
        if len((whole := cells.large(people, scored)).names) > 3
    ]
    compared = [each for each in large if len(each.names) > 1]
    tests = len(compared) + sum(each.numbers is not None for each in large) + len(crossed)
    return Family(columns, values, people, scored, large, crossed, tests, shuffles_for(max(tests, 1)))


def gap_rows(family: Family, options: MeasureOptions) -> Iterator[Row]:
    """Gaps of all attributes, then slopes, then intersections; with a δ also whether groups are shown to be alike."""
    rng = options.rng()
    alike: list[Row] = []
    for groups in family.groups:
        if len(groups.names) > 1:
            rows = list(_group_rows(family, groups, rng))
            yield from rows
            if options.delta is not None:
                alike += _equivalence(family, groups, options.delta, rows)
        if groups.numbers is not None:
            yield from _slope_rows(family, groups, rng)
    for first, second, cells in family.crossed:
        yield from _intersection_rows(family, first, second, cells, rng)
    yield from _judged_alike(alike)


def _group_rows(family: Family, groups: Groups, rng: np.random.Generator) -> Iterator[Row]:
    """For every prompt: the highest group against the lowest; with more than two groups, each against the rest."""
    many = len(groups.names)
    inside = np.where(family.scored, groups.codes, -1)
    sizes = np.bincount(inside[inside >= 0], minlength=many)
    contrasts = pairs_and_rests(sizes)
    result = group_contrasts(
        family.values, inside, contrasts, rng, family.shuffles, people=family.people, tests=family.tests
    )
    pairs = [(i, j) for i in range(many) for j in range(i + 1, many)]
    for k, column in enumerate(family.columns):
        gaps = result.value[: len(pairs), k]
        if np.isnan(gaps).all():
            continue
        widest = int(np.nanargmax(np.abs(gaps)))
        n = int((inside[~np.isnan(column.values)] >= 0).sum())
        higher, lower = pairs[widest] if gaps[widest] >= 0 else pairs[widest][::-1]
        row = _bounded(column.row("gap", 0.0, n, groups.attribute), result, widest, k, flipped=gaps[widest] < 0)
        chance = float(result.by_chance[k])
        note = join((f"the widest of {len(pairs)} pairs" if len(pairs) > 1 else None, TOGETHER))
        yield row._replace(group=groups.names[higher], against=groups.names[lower], chance=chance, note=note)
        for place in range(many if many > 2 else 0):
            row = _bounded(column.row("gap", 0.0, n, groups.attribute), result, len(pairs) + place, k)
            yield row._replace(group=groups.names[place], against=REST, note=TOGETHER)


def _bounded(row: Row, result: Contrasts, place: int, column: int, *, flipped: bool = False, most: float = 1.0) -> Row:
    """The row with its value, interval and p-value; no interval leaves the possible range."""
    value, low, high = (float(part[place, column]) for part in (result.value, result.low, result.high))
    if flipped:
        value, low, high = -value, -high, -low
    low, high = (float(np.clip(bound, -most, most)) for bound in (low, high))
    p_value, at_most = float(result.p_value[place, column]), bool(result.at_most[place, column])
    return row._replace(value=value, low=low, high=high, p_value=p_value, p_at_most=at_most or None)


def _slope_rows(family: Family, groups: Groups, rng: np.random.Generator) -> Iterator[Row]:
    """How much each prompt rises with one more of the attribute."""
    numbers = groups.numbers
    assert numbers is not None
    known = ~np.isnan(numbers)
    there = ~np.isnan(family.values)
    patterns = list({tuple(rows) for rows in (there & known[:, None]).T.tolist()})
    for pattern in patterns:
        rows, columns = np.array(pattern), np.flatnonzero((there & known[:, None] == np.array(pattern)[:, None]).all(0))
        people = family.people[rows]
        spread = float(np.ptp(numbers[rows])) if rows.any() else 0.0
        if len(np.unique(people)) < FEWEST or not spread:
            continue
        values = family.values[np.ix_(rows, columns)]
        tests = family.tests * len(patterns)
        result = slopes(values, numbers[rows], rng, shuffles_for(tests), people=people, tests=tests)
        for k, column in enumerate(columns.tolist()):
            row = family.columns[column].row("slope", 0.0, int(rows.sum()), groups.attribute)
            note = f"change with one more of {groups.attribute}, from {_span(numbers[rows])}; {TOGETHER}"
            yield _bounded(row, result, 0, k, most=1 / spread)._replace(note=note)


def _span(numbers: Array) -> str:
    return f"{numbers.min():g} to {numbers.max():g}"


def _intersection_rows(
    family: Family, first: Groups, second: Groups, cells: Groups, rng: np.random.Generator
) -> Iterator[Row]:
    """How far each intersection departs from what its two attributes add up to, partly pooled."""
    whole = (cells.codes >= 0) & ~np.isnan(family.values).any(axis=1)
    if len(np.unique(cells.codes[whole])) < len(cells.names):
        return
    design = np.column_stack(
        [
            np.ones(whole.sum()),
            *(groups.codes[whole, None] == np.arange(1, len(groups.names)) for groups in (first, second)),
        ]
    ).astype(np.float64)
    own = {"people": family.people[whole], "tests": family.tests}
    result = interactions(family.values[whole], cells.codes[whole], design, rng, family.shuffles, **own)  # type: ignore[arg-type]
    sizes = np.bincount(cells.codes[whole])
    for k, column in enumerate(family.columns):
        for place, name in enumerate(cells.names):
            row = column.row("interaction", float(result.value[place, k]), int(sizes[place]), cells.attribute)
            low, high = (float(np.clip(part[place, k], -1, 1)) for part in (result.low, result.high))
            p_value, at_most = float(result.p_value[place, k]), bool(result.at_most[place, k])
            note = f"partly pooled; {100 * result.raw[place, k]:+.2f} points without pooling; {TOGETHER}"
            row = row._replace(low=low, high=high, p_value=p_value, p_at_most=at_most or None)
            yield row._replace(group=name, note=note)


def _equivalence(family: Family, groups: Groups, delta: float, gaps: Sequence[Row]) -> Iterator[Row]:
    """The smallest δ within which all groups are shown to lie; p is not corrected yet, the verdict that of the gap."""
    codes = np.where(family.scored, groups.codes, -1)
    people = np.unique(family.people, return_inverse=True)[1]
    test = welch_equivalence(clustered_moments(family.values, codes, groups.names, people), delta)
    differs = {(row.metric, row.concept, row.template) for row in gaps if row.against != REST and shown(row)}
    for k, column in enumerate(family.columns):
        n = int((codes[~np.isnan(column.values)] >= 0).sum())
        row = column.row("equivalence", min(1.0, float(test.bound[k])), n, groups.attribute)
        key = column.row("gap", 0.0, n, groups.attribute)
        gap = DIFFERENCE if (key.metric, key.concept, key.template) in differs else UNDECIDED
        yield row._replace(p_value=float(test.p_value[k]), delta=delta, equivalence=gap)


def _judged_alike(rows: list[Row]) -> Iterator[Row]:
    """The rows of equivalence, corrected over all prompts and attributes (Holm's)."""
    adjusted = holm(np.array([row.p_value for row in rows])).tolist() if rows else []
    for row, p_value in zip(rows, adjusted, strict=True):
        said = verdict(0.0 if row.equivalence == DIFFERENCE else 1.0, p_value)
        yield row._replace(
            p_value=p_value, equivalence=said, note="p: corrected over all prompts and attributes (Holm's)"
        )


def shown(row: Row) -> bool:
    """Whether a row shows a difference: a corrected p of at most 0.05, and an interval without 0."""
    if row.p_value is None or row.low is None or row.high is None:
        return False
    return row.p_value <= ALPHA and (row.low > 0 or row.high < 0)
