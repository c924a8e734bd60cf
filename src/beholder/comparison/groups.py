"""Groups: whom is compared, with sizes, and how the groups differ in everything else (balance)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison.people import Codes, People
from beholder.comparison.verdicts import FEWEST
from beholder.core.tables import column_in
from beholder.datasets.selection import MOST_VALUES, NUMBERS, binned, numbers_of, quantile_edges

Array = npt.NDArray[np.float64]
CROSSING = " × "
REST = "everyone else"
FEWEST_NUMBERS = 3
"""Different numbers below which there is no slope."""
MOST_GROUPS = 20
"""A column with more values has no groups that could be unbalanced."""


class Groups(NamedTuple):
    """The groups of one attribute, or of several that are crossed."""

    attribute: str
    names: list[str]
    codes: Codes
    """The place of each image's group among the names, −1 for none."""
    numbers: Array | None = None
    """The attribute as numbers, NaN where unknown; None where it is none."""

    def mask(self, group: int | str) -> npt.NDArray[np.bool_]:
        """The images of one group."""
        place = self.names.index(group) if isinstance(group, str) else group
        return np.asarray(self.codes == place)

    def labels(self) -> pl.Series:
        """Each image's group by its name, null for none."""
        return pl.Series([self.names[code] if code >= 0 else None for code in self.codes], dtype=pl.String)

    def sizes(self, people: People) -> list[int]:
        """How many people each group has."""
        pairs = np.unique(np.stack([self.codes, people.codes])[:, self.codes >= 0], axis=1)
        return [int(size) for size in np.bincount(pairs[0], minlength=len(self.names))]

    def large(self, people: People, scored: npt.NDArray[np.bool_] | None = None) -> Groups:
        """Only the groups in which at least five people have a score."""
        inside = self if scored is None else self._replace(codes=np.where(scored, self.codes, -1))
        return inside.kept([place for place, size in enumerate(inside.sizes(people)) if size >= FEWEST])

    def kept(self, places: Sequence[int]) -> Groups:
        """Only some of the groups."""
        place = np.full(len(self.names) + 1, -1)
        place[list(places)] = np.arange(len(places))
        return self._replace(names=[self.names[k] for k in places], codes=place[self.codes])

    def pairs(self) -> list[tuple[int, int]]:
        """Every two groups."""
        return list(combinations(range(len(self.names)), 2))

    def pair_weights(self) -> Array:
        """Every two groups as a contrast, first less second: `[n_pairs, n_groups]`."""
        each = np.eye(len(self.names))
        return np.array([each[i] - each[j] for i, j in self.pairs()]).reshape(len(self.pairs()), len(self.names))

    def rest_weights(self, people: People) -> Array:
        """Each group less all others together, by how many people these have: `[n_groups, n_groups]`."""
        sizes, each = np.array(self.sizes(people), dtype=np.float64), np.eye(len(self.names))
        return np.array([unit - (1 - unit) * sizes / ((1 - unit) * sizes).sum() for unit in each])

    def balance(self, table: pl.DataFrame, people: People, columns: Sequence[str]) -> list[Imbalance]:
        """The columns whose values are spread unequally over the groups, the most unequal first."""
        found = [_imbalance(self, table, people, name) for name in columns if name != self.attribute]
        return sorted((each for each in found if each is not None), key=lambda each: -each.association)


class Imbalance(NamedTuple):
    """A label that is spread unequally over the groups: differences between groups may be its doing."""

    column: str
    association: float
    """Cramér's V: 0 spread alike, 1 the groups and the label are the same."""
    shares: dict[str, dict[str, float]]
    """For each value of the label, its share in each group."""


UNBALANCED = 0.2
"""Cramér's V from which a label is called unbalanced, if it is more than chance gives."""


def _imbalance(groups: Groups, table: pl.DataFrame, people: People, column: str) -> Imbalance | None:
    if column not in table.columns or not 1 < table[column].n_unique() <= MOST_GROUPS:
        return None
    other = group_by(table, (column,))
    inside = (groups.codes >= 0) & (other.codes >= 0)
    triples = np.unique(np.stack([groups.codes, other.codes, people.codes])[:, inside], axis=1)
    counts = np.zeros((len(groups.names), len(other.names)))
    np.add.at(counts, (triples[0], triples[1]), 1)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(counts.shape, default=0) < 2:
        return None
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    excess = float(((counts - expected) ** 2 / expected).sum())
    free = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    association = float(np.sqrt(excess / counts.sum() / (min(counts.shape) - 1)))
    if association < UNBALANCED or excess < free + 3 * np.sqrt(2 * free):
        return None
    values = [name for code, name in enumerate(other.names) if (triples[1] == code).any()]
    there = [name for code, name in enumerate(groups.names) if (triples[0] == code).any()]
    shares = counts / counts.sum(axis=1, keepdims=True)
    return Imbalance(
        column, association, {v: dict(zip(there, shares[:, k].tolist(), strict=True)) for k, v in enumerate(values)}
    )


def groups_of(images: pl.DataFrame, by: Sequence[str]) -> list[Groups]:
    """The groups of each attribute; numbers of more than twelve values are put into bins of about equal counts."""
    return [_of_column(images, column_in(images, attribute)) for attribute in by]


def _of_column(images: pl.DataFrame, attribute: str) -> Groups:
    column = images[attribute]
    numbers = images[attribute + NUMBERS] if attribute + NUMBERS in images.columns else numbers_of(column)
    if numbers is not None and attribute + NUMBERS not in images.columns and column.n_unique() > MOST_VALUES:
        column = binned(numbers, quantile_edges(numbers))
    slope = numbers is not None and numbers.drop_nulls().n_unique() >= FEWEST_NUMBERS
    groups = group_by(pl.DataFrame({attribute: column.cast(pl.String)}), (attribute,))
    return groups._replace(numbers=numbers.to_numpy().astype(np.float64) if numbers is not None and slope else None)


def group_by(images: pl.DataFrame, attributes: Sequence[str]) -> Groups:
    """Groups of one attribute, or of several crossed, which are named by all their values (`Black Female`)."""
    values = list(zip(*(images[name].cast(pl.String) for name in attributes), strict=True))
    known = sorted({each for each in values if None not in each}, key=lambda each: [natural(part) for part in each])
    code_of = {each: code for code, each in enumerate(known)}
    codes = np.array([code_of.get(each, -1) for each in values], dtype=np.intp)
    return Groups(CROSSING.join(attributes), _names(known), codes)


def _names(known: list[tuple[str, ...]]) -> list[str]:
    """The values of each group with a blank between them; in quotes where two groups would read alike.

    >>> _names([("A B", "C"), ("A", "B C")]), _names([("A", "B")])
    (['"A B" "C"', '"A" "B C"'], ['A B'])
    """
    plain = [" ".join(each) for each in known]
    if len(set(plain)) == len(plain):
        return plain
    return [" ".join(json.dumps(part, ensure_ascii=False) for part in each) for each in known]


def crossing(first: Groups, second: Groups) -> Groups:
    """Two attributes crossed: `woman × old`."""
    codes = np.where((first.codes >= 0) & (second.codes >= 0), first.codes * len(second.names) + second.codes, -1)
    names = [f"{a}{CROSSING}{b}" for a in first.names for b in second.names]
    both = Groups(f"{first.attribute}{CROSSING}{second.attribute}", names, codes)
    return both.kept(np.unique(codes[codes >= 0]).tolist())


def crossings(groups: Sequence[Groups]) -> Iterator[tuple[Groups, Groups, Groups]]:
    """Every two attributes, and their crossing."""
    for first, second in combinations(groups, 2):
        yield first, second, crossing(first, second)


def natural(name: str) -> list[tuple[float, str]]:
    """A key that sorts numbers by size, also at the beginning of a bin, and words by alphabet.

    >>> sorted(["10 man", "2 man", "under 2"], key=natural)
    ['under 2', '2 man', '10 man']
    """
    words = name.replace("–", " ").removeprefix("under ").split()
    parts = [(float(word) if word.replace(".", "", 1).isdecimal() else float("inf"), word) for word in words]
    if name.startswith("under ") and parts:
        parts[0] = (parts[0][0] - 0.5, parts[0][1])
    return parts
