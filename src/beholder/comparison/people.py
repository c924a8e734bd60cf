"""People: which rows are pictures of one person. One rule for every study and every command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import UnknownName

Codes = npt.NDArray[np.intp]
COLUMNS = ("person", "name", "identity", "seed", "subject")
"""Columns that say who is shown; the first that a table has is used."""


@dataclass(frozen=True)
class People:
    """Who is shown in each image: `codes[i]` is a number for the person of image i."""

    codes: Codes
    column: str | None = None
    """The column that says so; None where each image counts as someone else."""

    def __len__(self) -> int:
        return self.count

    @cached_property
    def count(self) -> int:
        """How many people there are."""
        return int(self.codes.max(initial=-1)) + 1

    @cached_property
    def repeated(self) -> bool:
        """Whether anybody has more than one image."""
        return self.count < len(self.codes)

    def rows(self, keep: npt.NDArray[np.bool_ | np.intp]) -> People:
        """The people of some of the images, numbered anew."""
        return People(np.unique(self.codes[keep], return_inverse=True)[1], self.column)

    def described(self) -> str:
        """For the page and the record.

        >>> People(np.array([0, 0, 1])).described()
        '2 people, 3 pictures; each person counts once'
        """
        if not self.repeated:
            return f"{self.count:,} people, one picture each"
        return f"{self.count:,} people, {len(self.codes):,} pictures; each person counts once"

    def conflicts(self, table: pl.DataFrame, columns: Sequence[str]) -> dict[str, int]:
        """For each column, how many people have more than one value in it; columns without a conflict are left out."""
        who = pl.Series("_person", self.codes)
        several = {
            name: table.select(who, pl.col(name).cast(pl.String))
            .drop_nulls()
            .group_by("_person")
            .agg(pl.col(name).n_unique())
            .filter(pl.col(name) > 1)
            .height
            for name in columns
            if name in table.columns
        }
        return {name: count for name, count in several.items() if count}


def people_of(table: pl.DataFrame, column: str | None = None) -> People:
    """Who is shown: by `column`, else by the first of `COLUMNS` that the table has; a blank is someone else.

    >>> people_of(pl.DataFrame({"name": ["Ada", "Ada", None]})).codes.tolist()
    [0, 0, 1]
    """
    if column is not None and column not in table.columns:
        raise UnknownName("column for --person", column, table.columns)
    used = column or next((name for name in COLUMNS if name in table.columns), None)
    if used is None:
        return People(np.arange(table.height))
    names = table[used].cast(pl.String).str.strip_chars().to_list()
    known: dict[object, int] = {}
    codes = [known.setdefault(name or ("", row), len(known)) for row, name in enumerate(names)]
    return People(np.array(codes, dtype=np.intp), used)
