"""Strata: other labels that a comparison is made within, so that what they explain is not held against the groups.

Where every group has people in the crossing of the labels, people change groups within its cells only. Where cells are
too thin, the labels are taken off additively and residuals are shuffled (Freedman and Lane 1983). Where a label and the
groups are the same, nothing can be taken off: the plain difference is judged, and `coincide` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison.groups import CROSSING, Groups, group_by
from beholder.comparison.people import Codes, People
from beholder.comparison.verdicts import FEWEST
from beholder.core.results import WITHIN

Array = npt.NDArray[np.float64]
ENOUGH = 0.8
"""Share of every group's people who have someone of another group in their cell: below it the cells are too thin."""
CROWDED = 5
"""People a cell has on average: with fewer, taking off every cell's own level costs more than it tells."""
UNKNOWN = "unknown"


class Strata(NamedTuple):
    """Labels to compare within."""

    labels: tuple[str, ...]
    """The labels that are taken into account."""
    cells: Codes
    """Each image's cell of the labels' crossing: people change groups within it; all 0 where labels are taken off."""
    design: Array
    """Columns that are taken off additively, `[n_images, n_columns]`; none where cells are used."""
    coincide: tuple[str, ...] = ()
    """Labels that cannot be told apart from the groups: they are not taken into account."""
    crossed: Groups | None = None
    """The labels' crossing, whether its cells are used or too thin."""
    attribute: str = ""
    """What is compared within them."""

    @property
    def variant(self) -> str | None:
        """For the results' column `variant`: in what the number differs from the plain one.

        >>> Strata(("branch",), np.zeros(2, int), np.empty((2, 0))).variant
        'within branch'
        """
        return f"{WITHIN}{', '.join(self.labels)}" if self.labels else None

    @property
    def note(self) -> str | None:
        """What a reader must know."""
        if not self.coincide:
            return None
        return "; ".join(f"{self.attribute} and {name} cannot be told apart here" for name in self.coincide)

    def rows(self, keep: npt.NDArray[np.bool_]) -> Strata:
        """The strata of some of the images."""
        crossed = None if self.crossed is None else self.crossed._replace(codes=self.crossed.codes[keep])
        return self._replace(cells=self.cells[keep], design=self.design[keep], crossed=crossed)


def no_strata(images: int, coincide: tuple[str, ...] = (), attribute: str = "") -> Strata:
    """Nothing to compare within."""
    return Strata((), np.zeros(images, dtype=np.intp), np.empty((images, 0)), coincide, attribute=attribute)


def strata_of(table: pl.DataFrame, groups: Groups, labels: Sequence[str], people: People) -> Strata:
    """What these groups are compared within: those of the labels that the table has and that vary.

    A label that an image lacks is a value of its own.
    """
    inside = groups.codes >= 0
    known = [name for name in labels if name in table.columns and name not in groups.attribute.split(CROSSING)]
    filled = table.select(pl.col(name).cast(pl.String).fill_null(UNKNOWN) for name in known)
    varied = [name for name in known if filled[name].filter(pl.Series(inside)).n_unique() > 1]
    coincide = tuple(name for name in varied if _coincides(groups, group_by(filled, (name,)).codes, people))
    used = [name for name in varied if name not in coincide]
    if not used:
        return no_strata(table.height, coincide, groups.attribute)
    crossed = group_by(filled, used)
    if _crowded(groups, crossed.codes, people) and _mixed_share(groups, crossed.codes, people) >= ENOUGH:
        none = np.empty((table.height, 0))
        return Strata(tuple(used), crossed.codes, none, coincide, crossed, groups.attribute)
    while used and not _estimable(groups, _dummies(filled, used)[inside], inside):
        coincide = (*coincide, used.pop())  # together the labels say all about the groups: the last one is left out
    if not used:
        return no_strata(table.height, coincide, groups.attribute)
    together = np.zeros(table.height, dtype=np.intp)
    return Strata(tuple(used), together, _dummies(filled, used), coincide, group_by(filled, used), groups.attribute)


def additive_strata(table: pl.DataFrame, groups: Groups, labels: Sequence[str]) -> Strata:
    """The labels taken off additively, whatever the groups are: also labels that the groups are made of."""
    filled = table.select(pl.col(name).cast(pl.String).fill_null(UNKNOWN) for name in labels if name in table.columns)
    varied = [name for name in filled.columns if filled[name].filter(pl.Series(groups.codes >= 0)).n_unique() > 1]
    if not varied:
        return no_strata(table.height, attribute=groups.attribute)
    together = np.zeros(table.height, dtype=np.intp)
    return Strata(tuple(varied), together, _dummies(filled, varied), attribute=groups.attribute)


def _people_in(groups: Groups, cells: Codes, people: People) -> npt.NDArray[np.int_]:
    """How many people each group has in each cell: `[n_groups, n_cells]`."""
    inside = groups.codes >= 0
    triples = np.unique(np.stack([groups.codes, cells, people.codes])[:, inside], axis=1)
    counts = np.zeros((len(groups.names), int(cells.max(initial=0)) + 1), dtype=int)
    np.add.at(counts, (triples[0], triples[1]), 1)
    return counts


def _mixed_share(groups: Groups, cells: Codes, people: People) -> float:
    """The least share of a group's people who have someone of another group in their cell."""
    counts = _people_in(groups, cells, people)
    mixed = (counts > 0).sum(axis=0) > 1
    sizes = counts.sum(axis=1)
    return float((counts[:, mixed].sum(axis=1)[sizes > 0] / sizes[sizes > 0]).min(initial=1.0))


def _crowded(groups: Groups, cells: Codes, people: People) -> bool:
    """Whether cells have people enough on average."""
    counts = _people_in(groups, cells, people)
    used = (counts > 0).any(axis=0).sum()
    return bool(counts.sum() >= CROWDED * used)


def _coincides(groups: Groups, cells: Codes, people: People) -> bool:
    """Whether fewer than five people of some group have anybody of another group in their cell."""
    counts = _people_in(groups, cells, people)
    mixed = counts[:, (counts > 0).sum(axis=0) > 1].sum(axis=1)
    return bool((mixed[counts.sum(axis=1) >= FEWEST] < FEWEST).any())


def _dummies(filled: pl.DataFrame, labels: Sequence[str]) -> Array:
    """A column for every value but the first of every label."""
    columns = [group_by(filled, (name,)) for name in labels]
    return np.concatenate(
        [(each.codes[:, None] == np.arange(1, len(each.names))).astype(np.float64) for each in columns], axis=1
    )


def _estimable(groups: Groups, design: Array, inside: npt.NDArray[np.bool_]) -> bool:
    """Whether the groups are told apart by more than the labels together."""
    member = (groups.codes[inside, None] == np.unique(groups.codes[inside])[None, 1:]).astype(np.float64)
    full = np.column_stack([np.ones(len(design)), design])
    left = member - full @ np.linalg.lstsq(full, member, rcond=None)[0]
    return bool(np.linalg.matrix_rank(left, tol=1e-6) == member.shape[1])
