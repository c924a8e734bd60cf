"""Women and men who are compared: those of each branch, and those of all branches, within their branch.

People with ambiguous names are left out, and every row says how many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison import Groups, Part, People, Strata, compare_groups, people_of, strata_of
from beholder.comparison.family import nothing_told
from beholder.comparison.means import OPEN
from beholder.core.results import Row
from beholder.studies.public_figures.levels import GROUPS
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

Array = npt.NDArray[np.float64]
EVERYONE = "all branches"
SAME = 0.99
"""Share of the variance of gender that a number explains from which they are the same."""


def parts(people: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame, str | None]]:
    """Each branch, then everyone: the people with unambiguous names, and a note on those left out."""
    branches = [(str(name), part) for (name,), part in people.group_by(["branch"], maintain_order=True)]
    for subset, part in (*branches, *([(EVERYONE, people)] if len(branches) > 1 else [])):
        clear = part.filter(pl.col("ambiguous").is_null())
        left = part.height - clear.height
        yield subset, clear, f"{left} of {part.height} left out: ambiguous names" if left else None


class Compared(NamedTuple):
    """Women and men of one branch, or of all."""

    subset: str
    table: pl.DataFrame
    groups: Groups
    people: People
    strata: Strata
    note: str | None

    def part(
        self, values: Array, rng: np.random.Generator, options: MeasureOptions, *, equal: Array | None = None
    ) -> Part:
        """Women less men in every column, within branches; with `equal`, at equal values of that number.

        Nothing is told where that number is the same for all, or says who is a woman.
        """
        strata = self.strata
        if equal is not None:
            if not self._told_apart(equal):
                return nothing_told(np.full((1, 1), min(self.groups.sizes(self.people))))
            strata = strata._replace(design=np.column_stack([strata.design, equal]))
        return compare_groups(values, self.groups, self.people, rng, strata=strata, shuffles=options.shuffles)

    def _told_apart(self, number: Array) -> bool:
        """Whether women and men differ by more than in this number, which differs within their branches."""
        cells = self.strata.cells
        member, own = (
            each - (np.bincount(cells, each) / np.maximum(np.bincount(cells), 1))[cells]
            for each in (self.groups.mask(0).astype(np.float64), number)
        )
        return bool((member @ own) ** 2 < SAME * (member @ member) * (own @ own))


def women_and_men(people: pl.DataFrame, options: MeasureOptions) -> list[Compared]:
    """Each branch, then all of them, as far as they have both women and men."""
    made = []
    for subset, part, left_out in parts(people):
        table = part.filter(pl.col("gender").is_in(GROUPS))
        if table["gender"].n_unique() == len(GROUPS):
            codes = np.array([GROUPS.index(gender) for gender in table["gender"]], dtype=np.intp)
            groups, who = Groups("gender", list(GROUPS), codes), people_of(table, options.person)
            strata = strata_of(table, groups, ("branch",), who)
            made.append(Compared(subset, table, groups, who, strata, join((left_out, strata.note))))
    return made


def as_ratio(row: Row) -> Row:
    """A difference of logarithms as a ratio."""
    far, numbers = np.log(OPEN), (row.value, row.low, row.high)
    value, low, high = (None if each is None else float(np.exp(np.clip(each, -far, far))) for each in numbers)
    return row._replace(value=value, low=low, high=high)
