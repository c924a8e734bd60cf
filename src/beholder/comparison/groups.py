"""Whom is compared: people, the groups they belong to, and the strata within which groups are compared.

Pictures of one person count once, by one rule for every study. Strata are other labels, so that what they explain is
not held against the groups. Where every group has people in the crossing of the labels, people change groups within
its cells only. Where cells are too thin, the labels are taken off additively and residuals are shuffled (Freedman and
Lane 1983). Where a label and the groups are the same, nothing can be taken off: the plain difference is judged, and
`coincide` says so.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import chi2_contingency

from beholder.comparison.family import FEWEST
from beholder.core.errors import UnknownName
from beholder.core.read import column_in
from beholder.core.results import WITHIN
from beholder.core.types import Array, Codes, Ints, Mask
from beholder.datasets.selection import MOST_VALUES, NUMBERS, binned, numbers_of, quantile_edges

COLUMNS = ("person", "name", "identity", "seed", "subject")  # they say who is shown; the first that is there is used
CROSSING = " × "
REST = "everyone else"
FEWEST_NUMBERS = 3  # different numbers below which there is no slope
MOST_GROUPS = 20  # a column with more values has no groups that could be unbalanced
UNBALANCED = 0.2  # Cramér's V from which a label is called unbalanced, if it is more than chance gives
ENOUGH = 0.8  # share of every group's people with someone of another group in their cell: below, cells are too thin
CROWDED = 5  # people a cell has on average: with fewer, taking off every cell's own level costs more than it tells
UNKNOWN = "unknown"


@dataclass(frozen=True)
class People:
    """Who is shown in each image: `codes[i]` is a number for the person of image i."""

    codes: Codes
    column: str | None = None  # the column that says so; None where each image counts as someone else

    def __len__(self) -> int:
        return self.count

    @cached_property
    def count(self) -> int:
        return int(self.codes.max(initial=-1)) + 1

    @cached_property
    def repeated(self) -> bool:
        """Whether anybody has more than one image."""
        return self.count < len(self.codes)

    def rows(self, keep: npt.NDArray[np.bool_ | np.intp]) -> "People":
        """The people of some of the images, numbered anew."""
        return People(np.unique(self.codes[keep], return_inverse=True)[1], self.column)

    def described(self) -> str:
        """For the page and the record."""
        if not self.repeated:
            return f"{self.count:,} people, one picture each"
        return f"{self.count:,} people, {len(self.codes):,} pictures; each person counts once"

    def conflicts(self, table: pl.DataFrame, columns: Sequence[str]) -> dict[str, int]:
        """For each column, how many people have more than one value in it; columns without a conflict are left out."""
        known = [name for name in columns if name in table.columns]
        shown = table.select(pl.Series("_person", self.codes), *(pl.col(name).cast(pl.String) for name in known))
        values = shown.group_by("_person").agg(pl.all().drop_nulls().n_unique())
        return {name: count for name in known if (count := int((values[name] > 1).sum()))}


def people_of(table: pl.DataFrame, column: str | None = None) -> People:
    """Who is shown: by `column`, else by the first of `COLUMNS` that the table has; a blank is someone else."""
    if column is not None and column not in table.columns:
        raise UnknownName("column for --person", column, table.columns)
    used = column or next((name for name in COLUMNS if name in table.columns), None)
    if used is None:
        return People(np.arange(table.height))
    names = table[used].cast(pl.String).str.strip_chars().to_list()
    known: dict[object, int] = {}
    codes = [known.setdefault(name or ("", row), len(known)) for row, name in enumerate(names)]
    return People(np.array(codes, dtype=np.intp), used)


class Groups(NamedTuple):
    """The groups of one attribute, or of several that are crossed."""

    attribute: str
    names: list[str]
    codes: Codes  # the place of each image's group among the names, −1 for none
    numbers: Array | None = None  # the attribute as numbers, NaN where unknown; None where it is none

    def mask(self, group: int | str) -> Mask:
        place = self.names.index(group) if isinstance(group, str) else group
        return np.asarray(self.codes == place)

    def labels(self) -> pl.Series:
        """Each image's group by its name, null for none."""
        return pl.Series([self.names[code] if code >= 0 else None for code in self.codes], dtype=pl.String)

    def sizes(self, people: People) -> list[int]:
        """How many people each group has."""
        pairs = np.unique(np.stack([self.codes, people.codes])[:, self.codes >= 0], axis=1)
        return [int(size) for size in np.bincount(pairs[0], minlength=len(self.names))]

    def large(self, people: People, scored: Mask | None = None) -> "Groups":
        """Only the groups in which at least five people have a score."""
        inside = self if scored is None else self._replace(codes=np.where(scored, self.codes, -1))
        return inside.kept([place for place, size in enumerate(inside.sizes(people)) if size >= FEWEST])

    def kept(self, places: Sequence[int]) -> "Groups":
        place = np.full(len(self.names) + 1, -1)
        place[list(places)] = np.arange(len(places))
        return self._replace(names=[self.names[k] for k in places], codes=place[self.codes])

    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.names)), 2))

    def pair_weights(self) -> Array:
        """Every two groups as a contrast, first less second: `[n_pairs, n_groups]`."""
        each = np.eye(len(self.names))
        return np.array([each[i] - each[j] for i, j in self.pairs()]).reshape(len(self.pairs()), len(self.names))

    def rest_weights(self, people: People) -> Array:
        """Each group less all others together, by how many people these have: `[n_groups, n_groups]`."""
        sizes, each = np.array(self.sizes(people), dtype=np.float64), np.eye(len(self.names))
        return np.array([unit - (1 - unit) * sizes / ((1 - unit) * sizes).sum() for unit in each])

    def balance(self, table: pl.DataFrame, people: People, columns: Sequence[str]) -> "list[Imbalance]":
        """The columns whose values are spread unequally over the groups, the most unequal first."""
        found = [_imbalance(self, table, people, name) for name in columns if name != self.attribute]
        return sorted((each for each in found if each is not None), key=lambda each: -each.association)


class Imbalance(NamedTuple):
    """A label that is spread unequally over the groups: differences between groups may be its doing."""

    column: str
    association: float  # Cramér's V: 0 spread alike, 1 the groups and the label are the same
    shares: dict[str, dict[str, float]]  # for each value of the label, its share in each group


def _imbalance(groups: Groups, table: pl.DataFrame, people: People, column: str) -> Imbalance | None:
    if column not in table.columns or not 1 < table[column].n_unique() <= MOST_GROUPS:
        return None
    other = group_by(table, (column,))
    known = groups._replace(codes=np.where(other.codes >= 0, groups.codes, -1))
    counts = _people_in(known, np.maximum(other.codes, 0), people)
    mine, theirs = counts.sum(axis=1) > 0, counts.sum(axis=0) > 0
    counts = counts[mine][:, theirs]
    if min(counts.shape, default=0) < 2:
        return None
    test = chi2_contingency(counts, correction=False)
    association = float(np.sqrt(test.statistic / counts.sum() / (min(counts.shape) - 1)))
    if association < UNBALANCED or test.statistic < test.dof + 3 * np.sqrt(2 * test.dof):
        return None
    names, shares = list(compress(groups.names, mine)), (counts / counts.sum(axis=1, keepdims=True)).T.tolist()
    by_value = zip(compress(other.names, theirs), shares, strict=True)
    return Imbalance(column, association, {value: dict(zip(names, row, strict=True)) for value, row in by_value})


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
    """The values of each group with a blank between them; in quotes where two groups would read alike."""
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
    yield from ((first, second, crossing(first, second)) for first, second in combinations(groups, 2))


def natural(name: str) -> list[tuple[float, str]]:
    """A key that sorts numbers by size, also at the beginning of a bin, and words by alphabet."""
    words = name.replace("–", " ").removeprefix("under ").split()
    parts = [(float(word) if word.replace(".", "", 1).isdecimal() else float("inf"), word) for word in words]
    if name.startswith("under ") and parts:
        parts[0] = (parts[0][0] - 0.5, parts[0][1])
    return parts


class Strata(NamedTuple):
    """Labels to compare within."""

    labels: tuple[str, ...]  # the labels that are taken into account
    cells: Codes
    """Each image's cell of the labels' crossing: people change groups within it; all 0 where labels are taken off."""
    design: Array  # columns that are taken off additively, `[n_images, n_columns]`; none where cells are used
    coincide: tuple[str, ...] = ()  # labels that coincide with the groups: they are not taken into account
    crossed: Groups | None = None  # the labels' crossing, whether its cells are used or too thin
    attribute: str = ""  # what is compared within them

    @property
    def variant(self) -> str | None:
        """For the results' column `variant`: in what the number differs from the plain one."""
        return f"{WITHIN}{', '.join(self.labels)}" if self.labels else None

    @property
    def note(self) -> str | None:
        """What a reader must know."""
        return "; ".join(f"{self.attribute} and {name} cannot be distinguished here" for name in self.coincide) or None

    def rows(self, keep: Mask) -> "Strata":
        crossed = None if self.crossed is None else self.crossed._replace(codes=self.crossed.codes[keep])
        return self._replace(cells=self.cells[keep], design=self.design[keep], crossed=crossed)


def no_strata(images: int, coincide: tuple[str, ...] = (), attribute: str = "") -> Strata:
    """Nothing to compare within."""
    return Strata((), np.zeros(images, dtype=np.intp), np.empty((images, 0)), coincide, attribute=attribute)


def strata_of(table: pl.DataFrame, groups: Groups, labels: Sequence[str], people: People) -> Strata:
    """What these groups are compared within: those of the labels that the table has and that vary."""
    # A label that an image lacks is a value of its own.
    inside = groups.codes >= 0
    known = [name for name in labels if name in table.columns and name not in groups.attribute.split(CROSSING)]
    filled = table.select(pl.col(name).cast(pl.String).fill_null(UNKNOWN) for name in known)
    varied = [name for name in known if filled[name].filter(pl.Series(inside)).n_unique() > 1]
    coincide = tuple(name for name in varied if _coincides(groups, group_by(filled, (name,)).codes, people))
    used = [name for name in varied if name not in coincide]
    if used and _thick(groups, (crossed := group_by(filled, used)).codes, people):
        none = np.empty((table.height, 0))
        return Strata(tuple(used), crossed.codes, none, coincide, crossed, groups.attribute)
    while used and not _estimable(groups, _dummies(filled, used)[inside], inside):
        coincide = (*coincide, used.pop())  # together the labels say all about the groups: the last one is left out
    return _taken_off(filled, used, groups, coincide, group_by(filled, used) if used else None)


def additive_strata(table: pl.DataFrame, groups: Groups, labels: Sequence[str]) -> Strata:
    """The labels taken off additively, whatever the groups are: also labels that the groups are made of."""
    filled = table.select(pl.col(name).cast(pl.String).fill_null(UNKNOWN) for name in labels if name in table.columns)
    varied = [name for name in filled.columns if filled[name].filter(pl.Series(groups.codes >= 0)).n_unique() > 1]
    return _taken_off(filled, varied, groups)


def _taken_off(
    filled: pl.DataFrame, used: list[str], groups: Groups, coincide: tuple[str, ...] = (), crossed: Groups | None = None
) -> Strata:
    if not used:
        return no_strata(len(groups.codes), coincide, groups.attribute)
    together = np.zeros(len(groups.codes), dtype=np.intp)
    return Strata(tuple(used), together, _dummies(filled, used), coincide, crossed, groups.attribute)


def _people_in(groups: Groups, cells: Codes, people: People) -> Ints:
    triples = np.unique(np.stack([groups.codes, cells, people.codes])[:, groups.codes >= 0], axis=1)
    counts = np.zeros((len(groups.names), int(cells.max(initial=0)) + 1), dtype=int)
    np.add.at(counts, (triples[0], triples[1]), 1)
    return counts


def _thick(groups: Groups, cells: Codes, people: People) -> bool:
    """Whether cells have people enough on average, and most people someone of another group in theirs."""
    counts = _people_in(groups, cells, people)
    mixed, sizes = (counts > 0).sum(axis=0) > 1, counts.sum(axis=1)
    share = (counts[:, mixed].sum(axis=1)[sizes > 0] / sizes[sizes > 0]).min(initial=1.0)
    return bool(counts.sum() >= CROWDED * counts.any(axis=0).sum() and share >= ENOUGH)


def _coincides(groups: Groups, cells: Codes, people: People) -> bool:
    """Whether fewer than five people of some group have anybody of another group in their cell."""
    counts = _people_in(groups, cells, people)
    mixed = counts[:, (counts > 0).sum(axis=0) > 1].sum(axis=1)
    return bool((mixed[counts.sum(axis=1) >= FEWEST] < FEWEST).any())


def _dummies(filled: pl.DataFrame, labels: Sequence[str]) -> Array:
    columns = [group_by(filled, (name,)) for name in labels]
    members = [each.codes[:, None] == np.arange(1, len(each.names)) for each in columns]
    return np.concatenate(members, axis=1).astype(np.float64)


def _estimable(groups: Groups, design: Array, inside: Mask) -> bool:
    """Whether the groups are distinguished by more than the labels together."""
    member = (groups.codes[inside, None] == np.unique(groups.codes[inside])[None, 1:]).astype(np.float64)
    full = np.column_stack([np.ones(len(design)), design])
    left = member - full @ np.linalg.lstsq(full, member, rcond=None)[0]
    return bool(np.linalg.matrix_rank(left, tol=1e-6) == member.shape[1])
