"""Groups by which own prompts are compared: the values of an attribute, bins of numbers, and crossings of two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.tables import column_in
from beholder.datasets.bins import MOST_VALUES, NUMBERS, binned, numbers_of, quantile_edges
from beholder.metrics.bootstrap import FEWEST
from beholder.studies.rows import people_shown

FEWEST_NUMBERS = 3
"""Different numbers below which there is no slope."""
Array = npt.NDArray[np.float64]


class Groups(NamedTuple):
    """The groups of one attribute, or of two that are crossed."""

    attribute: str
    names: list[str]
    codes: npt.NDArray[np.int_]
    """The place of each image's group among the names, −1 for none."""
    numbers: Array | None = None
    """The attribute as numbers, NaN where unknown; None where it is none."""

    def mask(self, place: int) -> npt.NDArray[np.bool_]:
        """The images of one group."""
        return np.asarray(self.codes == place)

    def large(self, people: npt.NDArray[np.str_], scored: npt.NDArray[np.bool_]) -> Groups:
        """Only the groups in which at least five people have a score."""
        kept = [k for k in range(len(self.names)) if len(np.unique(people[self.mask(k) & scored])) >= FEWEST]
        place = np.full(len(self.names) + 1, -1)
        place[kept] = np.arange(len(kept))
        return self._replace(names=[self.names[k] for k in kept], codes=place[self.codes])


def groups_of(images: pl.DataFrame, by: Sequence[str]) -> list[Groups]:
    """The groups of each attribute; numbers of more than twelve values are put into bins of about equal counts."""
    return [_groups(images, column_in(images, attribute)) for attribute in by]


def _groups(images: pl.DataFrame, attribute: str) -> Groups:
    column = images[attribute]
    numbers = images[attribute + NUMBERS] if attribute + NUMBERS in images.columns else numbers_of(column)
    if numbers is not None and attribute + NUMBERS not in images.columns and column.n_unique() > MOST_VALUES:
        column = binned(numbers, quantile_edges(numbers))
    slope = numbers is not None and numbers.drop_nulls().n_unique() >= FEWEST_NUMBERS
    return coded(attribute, column.cast(pl.String), numbers.to_numpy() if numbers is not None and slope else None)


def coded(attribute: str, labels: pl.Series, numbers: Array | None = None) -> Groups:
    """Groups by their names, in order: numbers by size, then words."""
    names = sorted(labels.drop_nulls().unique(), key=_by_size)
    place = {name: number for number, name in enumerate(names)}
    codes = np.array([-1 if label is None else place[label] for label in labels], dtype=int)
    return Groups(attribute, names, codes, numbers)


def crossings(groups: Sequence[Groups]) -> Iterator[tuple[Groups, Groups, Groups]]:
    """Every two attributes, and their crossing."""
    for first, second in combinations(groups, 2):
        both = (first.codes >= 0) & (second.codes >= 0)
        labels = [
            f"{first.names[a]} × {second.names[b]}" if known else None
            for a, b, known in zip(first.codes, second.codes, both, strict=True)
        ]
        yield first, second, coded(f"{first.attribute} × {second.attribute}", pl.Series(labels, dtype=pl.String))


def people_of(images: pl.DataFrame) -> npt.NDArray[np.str_]:
    """Who is shown: the column `person`, else a name; else each image is someone of their own."""
    shown = people_shown(images)
    if "person" not in images.columns:
        return shown
    person = images["person"].cast(pl.String)
    return np.where(
        person.is_null().to_numpy(), shown, pl.select("person " + person.fill_null("")).to_series().to_numpy()
    )


def _by_size(group: str) -> tuple[float, str]:
    """Numbers by their size, also at the beginning of a bin; then words: 2 before 10."""
    words = group.replace("–", " ").removeprefix("under ").split()
    try:
        return float(words[0]) - group.startswith("under "), group
    except (ValueError, IndexError):
        return float("inf"), group
